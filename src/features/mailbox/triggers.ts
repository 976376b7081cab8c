/**
 * Time triggers: at the scheduled time, an actor gets mail from itself. Each is a row with a timer, so it survives
 * restarts. If times were missed, it fires once and continues from now. It ends with the run's attempt, and when it fires for a
 * person who has left the team.
 */
import { newId } from '../../base/ids.ts';
import { type Page, type PageRequest, page, readCursor } from '../../core/page.ts';
import { Problem, problems } from '../../core/problem.ts';
import type { Tx } from '../../store/store.ts';
import type { FactHandlers } from '../../work/facts.ts';
import type { TimerHandlers } from '../../work/timers.ts';
import type { Caller } from '../accounts/rules.ts';
import { BY_OPERATOR } from '../audit/rules/audit.ts';
import { requireRun } from '../runs/access.ts';
import { findRun, type RunRow, runOfNum } from '../runs/queries/runs.ts';
import { isRunOver } from '../runs/rules/run.ts';
import { type Commander, toCommander } from '../runs/run-commands.ts';
import { teamOfNum } from '../teams/queries.ts';
import { actorOfRun, resolveActingActor, resolveFormerActor } from './addresses.ts';
import { limits } from './limits.ts';
import {
  deleteTrigger,
  findTrigger,
  insertTrigger,
  listTriggers,
  type TriggerRow,
  toTrigger,
  triggersOfRun,
  updateTrigger,
} from './queries/triggers.ts';
import { firstTime, nextTime, type Schedule } from './rules/schedule.ts';
import type { Trigger } from './rules/trigger.ts';
import type { Mailbox, MailboxOptions } from './service.ts';

export interface SetTrigger extends Schedule {
  run_id: string;
  payload: Record<string, unknown>;
}

export type TriggersOptions = Pick<MailboxOptions, 'store' | 'clock' | 'timers' | 'audit' | 'idempotency'>;

export class Triggers {
  readonly #options: TriggersOptions;
  readonly #mailbox: Mailbox;

  constructor(options: TriggersOptions, mailbox: Mailbox) {
    this.#options = options;
    this.#mailbox = mailbox;
  }

  // --- people ---------------------------------------------------------------------------------------------------------

  /** Newest first. */
  list(
    caller: Caller,
    actor_id: string,
    { run_id, limit, cursor }: PageRequest & { run_id?: string | undefined },
  ): Promise<Page<Trigger>> {
    const [before_num] = readCursor(cursor, 'number') ?? [];
    return this.#options.store.read(async (reader) => {
      const acting = await resolveActingActor(reader, caller, 'team.read', actor_id, run_id);
      const { run, view } = acting;
      const filter = { actor_id: acting.actor_id, run_num: run?.num, view, before_num };
      const rows = await listTriggers(reader, limit === undefined ? filter : { ...filter, limit: limit + 1 });
      return page(rows, limit ?? rows.length, toTrigger, (row) => [row.num]);
    });
  }

  /** The triggers of all actors of a run, newest first. */
  ofRun(caller: Caller, run_id: string, { limit, cursor }: PageRequest): Promise<Page<Trigger>> {
    const [before_num] = readCursor(cursor, 'number') ?? [];
    return this.#options.store.read(async (reader) => {
      const { run } = await requireRun(reader, caller, 'team.read', run_id);
      const filter = { run_num: run.num, before_num };
      const rows = await listTriggers(reader, limit === undefined ? filter : { ...filter, limit: limit + 1 });
      return page(rows, limit ?? rows.length, toTrigger, (row) => [row.num]);
    });
  }

  /** `locate`: returns the URL of the new trigger. */
  set(
    caller: Caller,
    actor_id: string,
    input: SetTrigger,
    idempotency_key: string | null,
    locate: (trigger: Trigger) => string,
  ): Promise<{ location: string; body: Trigger }> {
    return this.#options.store.write(async (tx) => {
      const acting = await resolveActingActor(tx, caller, 'team.work', actor_id, input.run_id);
      const row = await this.add(tx, acting.run!, acting.actor_id, input, toCommander(caller));
      const body = toTrigger(row);
      const answer = { location: locate(body), body };
      if (idempotency_key !== null) {
        await this.#options.idempotency.storeWith(tx, caller, idempotency_key, { status: 201, ...answer });
      }
      return answer;
    });
  }

  /**
   * Deletes a trigger of the actor, also if that is a person who has left the team. Throws `trigger not found`, also for a
   * trigger of another actor.
   */
  remove(caller: Caller, actor_id: string, id: string): Promise<void> {
    return this.#options.store.write(async (tx) => {
      const row = await findTrigger(tx, id);
      const owner = row
        ? await resolveFormerActor(tx, caller, 'team.work', actor_id, row)
        : (await resolveActingActor(tx, caller, 'team.work', actor_id)).actor_id;
      await this.drop(tx, id, { actor_id: owner, run_num: null }, toCommander(caller));
    });
  }

  // --- actors ---------------------------------------------------------------------------------------------------------

  /** Throws if its schedule is invalid, and `run is over`, `payload is too large`, and `too many triggers in the run`. */
  async add(
    tx: Tx,
    run: RunRow,
    actor_id: string,
    { payload, at, every_seconds, cron, timezone }: Omit<SetTrigger, 'run_id'>,
    by: Commander,
  ): Promise<TriggerRow> {
    if (isRunOver(run)) throw problems.runOver();
    const now = this.#options.clock.now();
    const schedule = { at, every_seconds, cron, timezone };
    const next_at = firstTime(schedule, now);
    const text = JSON.stringify(payload);
    const bytes = Buffer.byteLength(text);
    if (bytes > limits.mail_payload_bytes_max) throw problems.payloadTooLarge();
    const others = await triggersOfRun(tx, run.num);
    const bytes_of_others = others.reduce((sum, other) => sum + Buffer.byteLength(other.payload), 0);
    if (
      others.length >= limits.triggers_per_run_max ||
      bytes_of_others + bytes > limits.triggers_per_run_bytes_max
    )
      throw problems.tooManyTriggers();
    const id = newId('trg');
    await insertTrigger(tx, {
      id,
      team_num: run.team_num,
      run_num: run.num,
      run_attempt: run.attempt,
      actor_id,
      ...schedule,
      payload: text,
      // A trigger does not reset the hop count, so an agent cannot start a new chain by waiting for one.
      hops: await this.#mailbox.hopsOf(tx, run, actor_id),
      next_at,
      last_at: null,
      fired: 0,
      created_by: by.user_id ?? by.actor_id,
      created_at: now,
    });
    await this.#options.timers.set(tx, 'trigger', id, next_at, {});
    const row = (await findTrigger(tx, id))!;
    await this.#audit(tx, by, 'trigger_created', row);
    return row;
  }

  /** Throws `trigger not found` for triggers of other actors. `run_num` null: of any run. */
  async drop(
    tx: Tx,
    id: string,
    { actor_id, run_num }: { actor_id: string; run_num: number | null },
    by: Commander,
  ): Promise<TriggerRow> {
    const row = await findTrigger(tx, id);
    if (row?.actor_id !== actor_id || (run_num ?? row.run_num) !== row.run_num)
      throw problems.triggerNotFound();
    await this.#delete(tx, row);
    await this.#audit(tx, by, 'trigger_deleted', row);
    return row;
  }

  timers(): Pick<TimerHandlers, 'trigger'> {
    return {
      trigger: async (tx, { ref }) => {
        const row = await findTrigger(tx, ref);
        if (row) await this.#fire(tx, row);
      },
    };
  }

  facts(): FactHandlers {
    return {
      run_changed: async (tx, { payload }) => {
        const run = await findRun(tx, payload.run_id);
        if (!run) return;
        for (const row of await triggersOfRun(tx, run.num)) if (isDone(row, run)) await this.#delete(tx, row);
      },
    };
  }

  async #fire(tx: Tx, row: TriggerRow): Promise<void> {
    const run = (await runOfNum(tx, row.run_num))!;
    if (isDone(row, run)) {
      await this.#delete(tx, row);
      return;
    }
    const { actor_id, hops } = row;
    const payload = JSON.parse(row.payload) as Record<string, unknown>;
    const now = this.#options.clock.now();
    let next_at: number | null;
    try {
      next_at = nextTime(row, row.next_at, now);
      // A person may have left the team, or have been deleted.
      await actorOfRun(tx, (await teamOfNum(tx, row.team_num))!, run, actor_id);
      await this.#mailbox.post(tx, { run, from_actor_id: actor_id, to_actor_id: actor_id, payload, hops });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      await this.#mailbox.addAttention(tx, run, `trigger ${row.id} of ${actor_id} ended: ${error.message}`);
      await this.#delete(tx, row);
      return;
    }
    if (next_at === null) await this.#delete(tx, row);
    else {
      await updateTrigger(tx, row.num, { next_at, last_at: now, fired: row.fired + 1 });
      await this.#options.timers.set(tx, 'trigger', row.id, next_at, {});
    }
  }

  async #delete(tx: Tx, row: TriggerRow): Promise<void> {
    await this.#options.timers.clear(tx, 'trigger', row.id);
    await deleteTrigger(tx, row.num);
  }

  async #audit(
    tx: Tx,
    { user_id, ip, operator }: Commander,
    event: 'trigger_created' | 'trigger_deleted',
    row: TriggerRow,
  ): Promise<void> {
    const { id: trigger_id, run_id, actor_id } = row;
    const { team_id, number } = (await findRun(tx, run_id))!;
    const details = { trigger_id, run_id, team_id, number, actor_id, ...(operator && BY_OPERATOR) };
    await this.#options.audit.record(tx, { event, user_id, ip, details });
  }
}

function isDone(row: TriggerRow, run: RunRow): boolean {
  return isRunOver(run) || row.run_attempt !== run.attempt;
}
