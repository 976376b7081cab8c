/**
 * Carries out the intent that gives an assignment to its agent. It creates the workdir and the agent if necessary, and then
 * starts a session for a plain member, or queues a prompt for a member that speaks ACP. It is idempotent, so it can be
 * repeated if its result is unknown.
 */
import { failpoint } from '../../base/failpoint.ts';
import { newId } from '../../base/ids.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { Worktree } from '../../core/node.ts';
import { explainRefusal, invalid, isTemporary, type Problem, problems } from '../../core/problem.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { NotYet } from '../../work/failures.ts';
import type { Intent } from '../../work/outbox.ts';
import { memberActorId } from '../actors/rules/actor.ts';
import { AcpTransaction } from '../agents/acp-transaction.ts';
import { type AgentCore, SERVICE } from '../agents/core.ts';
import { type CreateAgent, fromPreset, insertNew } from '../agents/creation.ts';
import type { Lifecycle } from '../agents/lifecycle.ts';
import { prepareWorkdir, sharedWorktreeId, sharesWorktree } from '../agents/placement.ts';
import { loadAcpState } from '../agents/queries/acp-state.ts';
import { type AgentRow, findAgent, findSession } from '../agents/queries/agents.ts';
import { firstAgentOfMember } from '../agents/queries/run-agents.ts';
import { isLive } from '../agents/records.ts';
import { ignoreNotRunning } from '../agents/session-errors.ts';
import { sendNext } from '../conversations/driver.ts';
import { queuePrompt } from '../conversations/queries.ts';
import type { ActorHelp } from '../feature.ts';
import { teamOfNum } from '../teams/queries.ts';
import { type Member, memberKind, type TeamSpec } from '../teams/rules/team.ts';
import type { Assignments } from './assignments.ts';
import { limits } from './limits.ts';
import type { Obstacles } from './obstacles.ts';
import { isAgentOfMember } from './participants.ts';
import {
  type Assignment,
  assignmentOfNum,
  hasReceivedAssignment,
  updateAssignment,
} from './queries/assignments.ts';
import { ownerOf, parseSpec, type RunRow, runOfNum } from './queries/runs.ts';
import { findStep } from './queries/steps.ts';
import { isRunOver } from './rules/run.ts';
import { getInput, roundInput, stepInput } from './step-io.ts';
import { introduction, roundPrompt, stepPrompt } from './step-prompts.ts';
import { runMayUseWorktree } from './worktree-rights.ts';

/** Everything that is needed to start an assignment. */
interface Launch {
  assignment: Assignment;
  run: RunRow;
  spec: TeamSpec;
  member: Member;
  team_name: string;
  /** Null if the agent does not exist yet. */
  agent: AgentRow | null;
}

export class Launcher {
  readonly #core: AgentCore;
  readonly #lifecycle: Lifecycle;
  readonly #assignments: Assignments;
  readonly #obstacles: Obstacles;

  constructor(core: AgentCore, lifecycle: Lifecycle, assignments: Assignments, obstacles: Obstacles) {
    this.#core = core;
    this.#lifecycle = lifecycle;
    this.#assignments = assignments;
    this.#obstacles = obstacles;
  }

  /** Gives the assignment to its agent. Idempotent: does nothing if it has ended or its agent already has it. */
  async prepare(intent: Intent<'prepare'>): Promise<void> {
    const { store, outbox } = this.#core;
    const { assignment_num } = intent.payload;
    try {
      const launch = await store.read((reader) => findLaunch(reader, assignment_num));
      if (!launch) return;
      // Checked first, so that no worktree is created for an agent that cannot start.
      if (launch.agent === null && this.#core.starts.active) throw problems.agentsStopping();
      await this.#stopBusyAgent(launch);
      const request = buildRequest(launch);
      const assignAgent = (worktree: Worktree | null) =>
        store.write(async (tx) => {
          await this.#assign(tx, assignment_num, request, worktree);
          await outbox.complete(tx, intent);
        });
      await (launch.agent === null ? this.#prepareWorkdir(launch, request, assignAgent) : assignAgent(null));
    } catch (error) {
      if (isTemporary(error)) {
        await this.#obstacles.show(intent, 'cannot start yet', error);
        throw error;
      }
      const refusal = error as Problem;
      const final = refusal.kind === 'invalid' || refusal.kind === 'not_found';
      const failed = {
        kind: 'failed',
        error_text: explainRefusal(refusal).slice(0, limits.step_error_chars_max),
        final,
      } as const;
      await store.write((tx) => this.#assignments.end(tx, assignment_num, failed));
    }
    failpoint('step_prepared');
  }

  /**
   * Stops the agent's current session if it cannot receive the assignment. That applies to any session of a plain agent, and to
   * a session that is being stopped, whose ACP connection failed, or whose input was lost in a restore.
   */
  async #stopBusyAgent({ agent, member }: Launch): Promise<void> {
    if (!agent || !isLive(agent)) return;
    const { store } = this.#core;
    const takes_prompts = await store.read(async (reader) => {
      const { num, stopping, stdin_lost } = (await findSession(reader, agent.session_id!))!;
      return stopping !== 1 && stdin_lost !== 1 && (await loadAcpState(reader, num)).phase !== 'failed';
    });
    if (memberKind(member) === 'acp' && takes_prompts) return;
    const find = (reader: Reader) => this.#core.records.mustFind(reader, agent.id);
    await this.#lifecycle.stopAndWait(find, SERVICE, sharedLimits.stop_grace_ms).catch(ignoreNotRunning);
    const is_still_live = await store.read(async (reader) => isLive(await find(reader)));
    if (is_still_live) throw new NotYet(`session ${agent.session_id} has not ended yet`);
  }

  /** If the member uses a worktree, all its agents in a run share it. */
  #prepareWorkdir(
    { assignment: { agent_id }, run, member, team_name }: Launch,
    request: CreateAgent,
    assignAgent: (worktree: Worktree) => Promise<void>,
  ): Promise<void> {
    const { member_id } = member;
    const ids = { agent_id, worktree_id: sharedWorktreeId(run.id, member_id) };
    const name = `${team_name}-${member_id}`;
    const rights = {
      may_use_all: false,
      owner: ownerOf(run),
      mayOperate: (reader: Reader, row: AgentRow) => runMayUseWorktree(reader, run, row),
      shares: (row: AgentRow) => sharesWorktree(row, { run_num: run.num, member_id }),
      // The team may have been renamed since the worktree was made.
      findSharing: (reader: Reader) => firstAgentOfMember(reader, run.num, member_id),
    };
    return prepareWorkdir(this.#core, ids, { ...request, name }, rights, assignAgent);
  }

  async #assign(
    tx: Tx,
    assignment_num: number,
    request: CreateAgent,
    worktree: Worktree | null,
  ): Promise<void> {
    const launch = await findLaunch(tx, assignment_num);
    if (!launch) return;
    const { assignment, run, member } = launch;
    await this.#obstacles.clear(tx, run, assignment);
    const row = launch.agent ?? (await this.#insertAgent(tx, launch, request, worktree));
    const is_acp = memberKind(member) === 'acp';
    if (is_acp) updateAssignment(tx, assignment.num, { prompt_id: await this.#queuePrompt(tx, launch, row) });
    else assertInputFits(await getInput(tx, run, assignment.work));
    if (isLive(row)) await AcpTransaction.run(this.#core, tx, row.session_id!, sendNext);
    else {
      const { session_id } = await this.#lifecycle.enqueueStart(tx, row, SERVICE, { waits: true });
      if (!is_acp) updateAssignment(tx, assignment.num, { session_id });
    }
    await this.#core.records.publish(tx, row.id);
  }

  /** Queues the prompt for the assignment, with the mail that the agent has not received. Returns its id. */
  async #queuePrompt(tx: Tx, launch: Launch, row: AgentRow): Promise<string> {
    const { extensions, actor_calls, clock } = this.#core;
    const { run, member } = launch;
    const prompt_id = newId('prm');
    const actor_id = memberActorId(member.member_id, run.team_id);
    const mail = await extensions.pendingMail(tx, { run_num: run.num, actor_id, prompt_id });
    const is_first = !isLive(row) || !(await hasReceivedAssignment(tx, row.session_id!));
    const help = actor_calls ? extensions.actorHelp() : null;
    const prompt = await buildPrompt(tx, launch, help, is_first);
    await queuePrompt(tx, row.num, {
      id: prompt_id,
      content: [{ type: 'text', text: mail === null ? prompt : `${prompt}\n\n${mail}` }],
      created_by: run.created_by,
      created_at: clock.now(),
    });
    return prompt_id;
  }

  async #insertAgent(
    tx: Tx,
    { assignment, run, member }: Launch,
    request: CreateAgent,
    worktree: Worktree | null,
  ): Promise<AgentRow> {
    // The agent existed when the launch was read, so no worktree was prepared. It has been deleted since.
    if (!worktree) throw problems.agentNotFound();
    const { member_id } = member;
    const membership = { team_num: run.team_num, run_num: run.num, member_id, state_team: run.team_id };
    const owner = { user_id: ownerOf(run), principal: SERVICE };
    return insertNew(this.#core, tx, assignment.agent_id, owner, request, worktree, membership);
  }
}

/** Returns null if the assignment has ended, its agent already has it, or the run is over. */
async function findLaunch(reader: Reader, assignment_num: number): Promise<Launch | null> {
  const assignment = await assignmentOfNum(reader, assignment_num);
  if (!assignment || assignment.ended || assignment.session_id !== null || assignment.prompt_id !== null)
    return null;
  const run = (await runOfNum(reader, assignment.run_num))!;
  if (isRunOver(run)) return null;
  const spec = parseSpec(run);
  const member = spec.members.find(({ member_id }) => member_id === assignment.member_id)!;
  const team_name = (await teamOfNum(reader, run.team_num))!.name;
  const agent = (await findAgent(reader, assignment.agent_id)) ?? null;
  // A node can report an agent with any id, so this one may not belong to the member.
  if (agent && !isAgentOfMember(agent, run, member))
    throw invalid(`agent ${agent.id} is not an agent of this member`);
  return { assignment, run, spec, member, team_name, agent };
}

function buildRequest({ assignment: { work }, run, member, team_name }: Launch): CreateAgent {
  const { member_id } = member;
  const is_for_step = memberKind(member) === 'plain' && work.kind === 'step';
  const names = [team_name, member_id, ...(is_for_step ? [work.step_key] : [])];
  const { env, ...agent } = member.agent!;
  return fromPreset({
    ...agent,
    env: { ...env },
    name: names.filter(Boolean).join('-').slice(0, sharedLimits.name_chars_max),
    worktree_ref: null,
    labels: {
      team: team_name.slice(0, sharedLimits.label_chars_max),
      run: String(run.number),
      member: member_id,
    },
    restart_policy: 'never',
    stdin: false,
    on_exit: 'kill',
    prompt: null,
    start: false,
  });
}

/**
 * `help`: the commands besides those for steps; null if agents cannot use commands. `first`: the first prompt to an
 * agent's session, which also introduces the team.
 */
async function buildPrompt(
  tx: Tx,
  { assignment: { work }, run, spec, member, team_name }: Launch,
  help: readonly ActorHelp[] | null,
  first: boolean,
): Promise<string> {
  const prompt =
    work.kind === 'round'
      ? roundPrompt(await roundInput(tx, run, work.round), help !== null)
      : stepPrompt((await findStep(tx, run.num, work.step_key))!, await stepInput(tx, run, work.step_key));
  return first ? `${introduction({ team_name, spec, member, help })}\n\n${prompt}` : prompt;
}

function assertInputFits(input: object): void {
  if (Buffer.byteLength(JSON.stringify(input)) > limits.step_input_bytes_max)
    throw problems.stepInputTooLarge();
}
