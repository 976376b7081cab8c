/**
 * Shows on a run why one of its assignments waits even though nobody has to decide anything: for example, its agent cannot
 * start because the disk of its node is full. The service tries again, and removes the reason when it has succeeded.
 */
import { isInterrupted, isUnreachable, Problem, problems, retryLevel } from '../../core/problem.ts';
import type { Tx } from '../../store/store.ts';
import { explainFailure } from '../../work/failures.ts';
import type { Intent } from '../../work/outbox.ts';
import { memberActorId } from '../actors/rules/actor.ts';
import type { AgentCore } from '../agents/core.ts';
import { limits } from './limits.ts';
import type { RunPublisher } from './publisher.ts';
import { type Assignment, assignmentOfNum } from './queries/assignments.ts';
import { type RunRow, runOfNum } from './queries/runs.ts';

export class Obstacles {
  readonly #core: AgentCore;
  readonly #publisher: Pick<RunPublisher, 'addAttention' | 'dropAttention'>;

  constructor(core: AgentCore, publisher: Pick<RunPublisher, 'addAttention' | 'dropAttention'>) {
    this.#core = core;
    this.#publisher = publisher;
  }

  /**
   * Call it before an intent of an assignment is repeated because of `error`. The first failures are not shown, because most
   * pass at once, nor is an unreachable node, which has a status of its own. `what`: what cannot be done. Never rejects.
   */
  async show(
    {
      payload: { assignment_num },
      failure,
    }: Intent<'prepare' | 'collect' | 'collect_message' | 'collect_failure'>,
    what: string,
    error: unknown,
  ): Promise<void> {
    const is_of_store = error instanceof Problem && error.is_of_store;
    const node_failed = error instanceof Problem && error.code === problems.nodeFailed().code;
    if (is_of_store || (isUnreachable(error) && !node_failed) || isInterrupted(error)) return;
    if ((failure?.count ?? 0) < limits.hidden_failures) return;
    const { store, log } = this.#core;
    const show = async (tx: Tx) => {
      const assignment = await assignmentOfNum(tx, assignment_num);
      const run = assignment && !assignment.ended ? await runOfNum(tx, assignment.run_num) : undefined;
      if (run) await this.put(tx, run, assignment!, `${what}: ${explainFailure(error)}`);
    };
    try {
      await store.write(show);
    } catch (err) {
      log[retryLevel(err, 'warn')]({ err, assignment_num }, 'cannot show why an assignment waits');
    }
  }

  /** Shows a reason instead of the previous one of the assignment. */
  async put(tx: Tx, run: RunRow, assignment: Assignment, reason: string): Promise<void> {
    const about = beginning(run, assignment);
    await this.#publisher.addAttention(tx, run, about + reason, (other) => other.startsWith(about));
  }

  /** Removes what is shown about an assignment. Idempotent. */
  async clear(tx: Tx, run: RunRow, assignment: Assignment): Promise<void> {
    const about = beginning(run, assignment);
    await this.#publisher.dropAttention(tx, run, (reason) => reason.startsWith(about));
  }
}

function beginning({ team_id }: RunRow, { member_id, work }: Assignment): string {
  const which = work.kind === 'round' ? `round ${work.round}` : `step ${work.step_key}`;
  return `${memberActorId(member_id, team_id)}, ${which}: `;
}
