/**
 * Carries out the effects of a run's state machine, in the transaction of the event that caused them. Each effect becomes
 * rows and intents. The intents give assignments to agents (`launcher.ts`), and the results come back as facts (`outcomes.ts`).
 */
import { idFrom, idFromKeyed } from '../../base/ids.ts';
import { subkey } from '../../base/secret-key.ts';
import type { Tx } from '../../store/store.ts';
import type { TimerHandlers } from '../../work/timers.ts';
import type { AgentCore } from '../agents/core.ts';
import { findAgent } from '../agents/queries/agents.ts';
import { liveAgentsOfRun, markStoppedByRun } from '../agents/queries/run-agents.ts';
import type { RunEnd } from '../agents/rules.ts';
import { type Member, memberKind } from '../teams/rules/team.ts';
import type { Assignments } from './assignments.ts';
import { isAgentOfMember } from './participants.ts';
import { findAssignment, hasAssignments, insertAssignment } from './queries/assignments.ts';
import { parseSpec, type RunRow } from './queries/runs.ts';
import { findStep } from './queries/steps.ts';
import type { AssignedWork, Effect } from './rules/graph.ts';

export class Dispatcher {
  readonly #core: AgentCore;
  readonly #assignments: Assignments;
  readonly #id_key: Uint8Array;

  constructor(core: AgentCore, assignments: Assignments) {
    this.#core = core;
    this.#assignments = assignments;
    this.#id_key = subkey(core.key, 'ids of agents in runs');
  }

  async execute(tx: Tx, run: RunRow, effects: readonly Effect[]): Promise<void> {
    const ends = effects.some(({ kind }) => kind === 'run_ended');
    // First, because the end of an assignment stops its agent too.
    if (ends) await markStoppedByRun(tx, run.num, run.status as RunEnd);
    // Agents of an earlier attempt of the run know things that agents of this one must not know, and must not receive its
    // mail, even if the restart launches nothing. The end of the run stops them below.
    if (!ends && run.attempt > 1 && !(await hasAssignments(tx, run))) await this.#stopAgents(tx, run);
    for (const effect of effects) await this.#execute(tx, run, effect);
  }

  timers(): Pick<TimerHandlers, 'step_timeout'> {
    return {
      step_timeout: (tx, timer) => this.#assignments.timedOut(tx, timer),
    };
  }

  async #execute(tx: Tx, run: RunRow, effect: Effect): Promise<void> {
    switch (effect.kind) {
      case 'launch':
        await this.#assign(tx, run, { ...effect, kind: 'step' });
        break;
      case 'start_round':
        await this.#assign(tx, run, { ...effect, kind: 'round' });
        break;
      case 'end_attempt':
        await this.#cancel(tx, run, { ...effect, kind: 'step' });
        break;
      case 'end_round':
        await this.#cancel(tx, run, { ...effect, kind: 'round' });
        break;
      case 'run_ended':
        await this.#stopAgents(tx, run);
        break;
    }
  }

  async #assign(tx: Tx, run: RunRow, work: AssignedWork): Promise<void> {
    const { members, leader_member_id } = parseSpec(run);
    const member_id =
      work.kind === 'step' ? (await findStep(tx, run.num, work.step_key))!.member_id : leader_member_id!;
    const member = members.find((member) => member.member_id === member_id)!;
    const agent_id = await this.#agentId(tx, run, member, work);
    const assignment_num = await insertAssignment(tx, {
      ...{ run_num: run.num, run_attempt: run.attempt, work, member_id, agent_id },
      created_at: this.#core.clock.now(),
    });
    await this.#core.outbox.enqueue(tx, member.agent!.node_id, agent_id, 'prepare', {
      assignment_num,
    });
  }

  /** The id is derived with a secret key, because a node that could predict it could report an agent with it. */
  async #agentId(tx: Tx, run: RunRow, member: Member, work: AssignedWork): Promise<string> {
    const parts = agentParts(run, member, work);
    // A run that began before an upgrade continues with its existing agents.
    const earlier = idFrom('agt', ...parts);
    const row = await findAgent(tx, earlier);
    return row && isAgentOfMember(row, run, member) ? earlier : idFromKeyed('agt', this.#id_key, ...parts);
  }

  async #cancel(tx: Tx, run: RunRow, work: AssignedWork): Promise<void> {
    const assignment = await findAssignment(tx, run, work);
    if (assignment) await this.#assignments.cancel(tx, assignment);
  }

  async #stopAgents(tx: Tx, run: RunRow): Promise<void> {
    for (const { id } of await liveAgentsOfRun(tx, run.num)) await this.#assignments.stopAgent(tx, id);
  }
}

/** An ACP member has one agent per attempt of the run. A plain member has one per step, and one for all its rounds. */
function agentParts(run: RunRow, member: Member, work: AssignedWork): string[] {
  const { member_id } = member;
  if (memberKind(member) === 'acp') return [run.id, member_id, 'attempt', String(run.attempt)];
  // These parts must never change because ids derive from them, so rounds keep the empty key.
  return [run.id, member_id, 'step', work.kind === 'step' ? work.step_key : ''];
}
