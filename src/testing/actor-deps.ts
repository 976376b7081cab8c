/** Teams' services as the actor surface sees them, in memory, for tests of the surface alone. Mail is kept as it was sent. */
import { Wake } from '../base/async.ts';
import type { TriggerRecord } from '../contract/actor.ts';
import { problems } from '../domain/problem.ts';
import type { Step } from '../domain/run.ts';
import type { ActorDeps } from '../services/actors/deps.ts';
import { findStep, insertSteps, type RunRow, stepsOf, toRun, toStep, updateStep } from '../store/runs.ts';
import type { Reader, Tx } from '../store/store.ts';

export interface KeptMail {
  id: number;
  run_num: number;
  from_actor_id: string;
  to_actor_id: string;
  payload: object;
  key: string | null;
  acknowledged: boolean;
}

export class FakeTeams implements ActorDeps {
  readonly mail: KeptMail[] = [];
  /** What was done by whom, in order. */
  readonly acts: string[] = [];
  readonly kept: (TriggerRecord & { actor_id: string })[] = [];
  readonly #wake = new Wake();

  readonly runs: ActorDeps['runs'] = {
    members: (_reader, run) => ({ run_id: run.id, members: [] }),
    steps: (reader, run) => stepsOf(reader, run.num).map((row) => toStep(row, run.id, null)),
    addStep: (tx, run, { step_key, member_id, depends_on, prompt, input }, by) => {
      this.acts.push(`${by} adds ${step_key}`);
      const text = { depends_on: JSON.stringify(depends_on), input: JSON.stringify(input), prompt };
      const state = {
        waits_for: 0,
        spoiled: 0,
        attempt: 0,
        tries: 0,
        launched: 0,
        added: 1,
        max_attempts: 1,
      };
      const kinds = { kind: 'outside', when: 'on_success', status: 'ready' } as const;
      insertSteps(tx, run.num, [{ step_key, member_id, ...text, ...state, ...kinds }]);
      return shown(tx, run, step_key);
    },
    completeStep: (tx, run, step_key, output, by) => {
      this.acts.push(`${by} completes ${step_key}`);
      const { num } = findStep(tx, run.num, step_key)!;
      updateStep(tx, num, { status: 'completed', output: JSON.stringify(output) });
      return shown(tx, run, step_key);
    },
    failStep: (tx, run, step_key, error_text, by) => {
      this.acts.push(`${by} fails ${step_key}`);
      updateStep(tx, findStep(tx, run.num, step_key)!.num, { status: 'failed', error_text });
      return shown(tx, run, step_key);
    },
    requireInput: (tx, run, step_key, reason, by) => {
      this.acts.push(`${by} asks about ${step_key}`);
      updateStep(tx, findStep(tx, run.num, step_key)!.num, { status: 'input_required', error_text: reason });
      return shown(tx, run, step_key);
    },
    completeRun: (_tx, run, output, by) => {
      this.acts.push(`${by} completes ${run.id}`);
      return { ...toRun(run), status: 'completed', output };
    },
    failRun: (_tx, run, error, by) => {
      this.acts.push(`${by} fails ${run.id}`);
      return { ...toRun(run), status: 'failed', error };
    },
  };

  readonly mailbox: ActorDeps['mailbox'] = {
    send: (_tx, { run, from_actor_id, to_actor_id, payload, idempotency_key: key }) => {
      const same = this.mail.find((one) => key !== null && one.key === key);
      if (same) return same;
      const mail = { id: this.mail.length + 1, run_num: run.num, from_actor_id, to_actor_id, payload, key };
      this.mail.push({ ...mail, acknowledged: false });
      this.#wake.notify();
      return this.mail.at(-1)!;
    },
    inbox: async ({ actor_id, run_num, limit, all }) =>
      this.mail
        .filter((one) => one.to_actor_id === actor_id && (all || !one.acknowledged))
        .filter((one) => run_num === null || one.run_num === run_num)
        .slice(0, limit),
    ack: (_tx, { actor_id, run_num, message_id }) => {
      const mail = this.mail.find((one) => one.id === message_id && one.to_actor_id === actor_id);
      if (!mail || (run_num !== null && mail.run_num !== run_num)) throw problems.messageNotFound();
      mail.acknowledged = true;
      return mail;
    },
    mailed: (_asked, wait_ms) => this.#wake.wait(wait_ms),
  };

  readonly triggers: ActorDeps['triggers'] = {
    list: (_reader, { actor_id }) => this.kept.filter((one) => one.actor_id === actor_id),
    set: (_tx, { actor_id }) => {
      this.kept.push({ id: `trg_${this.kept.length + 1}`, actor_id });
      return this.kept.at(-1)!;
    },
    cancel: (_tx, { actor_id, trigger_id }) => {
      const at = this.kept.findIndex((one) => one.id === trigger_id && one.actor_id === actor_id);
      if (at < 0) throw problems.notFound();
      return this.kept.splice(at, 1)[0]!;
    },
  };
}

function shown(reader: Reader | Tx, run: RunRow, step_key: string): Step {
  return toStep(findStep(reader, run.num, step_key)!, run.id, null);
}
