/**
 * What the actor surface needs of teams' services: each a part of the transaction that also checked who calls. `run` is the
 * row of the transaction, `by` the actor id that is written down.
 */
import type { MailRecord, TriggerRecord } from '../../contract/actor.ts';
import type { TriggerTimes } from '../../contract/mail.ts';
import type { View } from '../../domain/policy.ts';
import type { Run, Step } from '../../domain/run.ts';
import type { RunRow } from '../../store/runs.ts';
import type { Reader, Tx } from '../../store/store.ts';

export interface ActorRuns {
  /** As `GET /api/teams/runs/{run_id}/members`. */
  members(reader: Reader, run: RunRow): object;
  /** In their order. */
  steps(reader: Reader, run: RunRow): Step[];
  /** Throws as `POST …/steps` does. */
  addStep(
    tx: Tx,
    run: RunRow,
    step: { step_key: string; member_id: string; depends_on: string[]; prompt: string; input: unknown },
    by: string,
  ): Step;
  /** `output`: any JSON; null: none. Throws `step not found` and `step is <status>`. */
  completeStep(tx: Tx, run: RunRow, step_key: string, output: unknown, by: string): Step;
  failStep(tx: Tx, run: RunRow, step_key: string, error_text: string, by: string): Step;
  /** Throws `step is <status>`. */
  requireInput(tx: Tx, run: RunRow, step_key: string, reason: string, by: string): Step;
  completeRun(tx: Tx, run: RunRow, output: unknown, by: string): Run;
  failRun(tx: Tx, run: RunRow, error_text: string, by: string): Run;
}

/** Whose, and in which run. */
export interface InboxOf {
  actor_id: string;
  /** Null: of all runs. */
  run_num: number | null;
  /** Of all runs: those of teams in it; absent: whichever. */
  view?: View;
}

export interface ActorMailbox {
  send(
    tx: Tx,
    mail: {
      run: RunRow;
      from_actor_id: string;
      to_actor_id: string;
      payload: Record<string, unknown>;
      /** Where an agent says it; null: whoever holds the secret does. */
      session_id: string | null;
      /** The same key and the same mail: the first one is answered. */
      idempotency_key: string | null;
    },
  ): MailRecord;
  /** Unacknowledged ones, or all, oldest first; they are delivered with that, in a transaction of its own. */
  inbox(asked: InboxOf & { limit: number; all: boolean }): Promise<MailRecord[]>;
  /** Throws `message not found`, also for another's, and another run's. */
  ack(tx: Tx, asked: InboxOf & { message_id: number }): MailRecord;
  /** Resolves when there may be mail for the actor, or after so long. */
  mailed(asked: InboxOf, wait_ms: number): Promise<void>;
}

export interface ActorTriggers {
  list(reader: Reader, asked: InboxOf): TriggerRecord[];
  /** Mail to the actor itself, whenever it is time. */
  set(
    tx: Tx,
    trigger: TriggerTimes & { run: RunRow; actor_id: string; payload: Record<string, unknown> },
  ): TriggerRecord;
  /** Throws when there is none of the actor's, in the run. */
  cancel(tx: Tx, asked: InboxOf & { trigger_id: string }): TriggerRecord;
}

export interface ActorDeps {
  runs: ActorRuns;
  mailbox: ActorMailbox;
  triggers: ActorTriggers;
}
