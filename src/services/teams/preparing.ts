/**
 * The intent that gives an attempt to its agent: a workdir and a record where there are none yet, then a session for a
 * plain member, a prompt for one that speaks ACP. It is carried out again after any doubt, and does nothing twice.
 */
import { KeyedQueue } from '../../base/async.ts';
import { failpoint } from '../../base/failpoint.ts';
import { idFrom, newId } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import { actorIdOf } from '../../domain/actor.ts';
import type { Worktree } from '../../domain/node.ts';
import { isOutOfReach, Problem, problems } from '../../domain/problem.ts';
import { isRunOver } from '../../domain/run.ts';
import { type Member, memberKind, type TeamSpec } from '../../domain/team.ts';
import type { Intent } from '../../flow/outbox.ts';
import { loadAcpState } from '../../store/acp.ts';
import { type AgentRow, findAgent, findSession } from '../../store/agents.ts';
import { queuePrompt } from '../../store/prompts.ts';
import {
  type AttemptRow,
  attemptOfNum,
  findStep,
  type RunRow,
  runOfNum,
  specOf,
  updateAttempt,
  wasGivenAny,
} from '../../store/runs.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { teamOfNum } from '../../store/teams.ts';
import { sendNext } from '../acp/driver.ts';
import { Exchange } from '../acp/exchange.ts';
import { type AgentsContext, SERVICE } from '../agents/context.ts';
import { type CreateAgent, fromPreset, insertNew, place } from '../agents/creation.ts';
import type { Lifecycle } from '../agents/lifecycle.ts';
import type { Attempts } from './attempts.ts';
import { roundWords, stepWords, welcome } from './prompt-words.ts';
import { stepInput } from './step-data.ts';

/** Words that name the mail which waits for an actor, in a prompt of ours; null: there is none. */
export type PendingMail = (tx: Tx, run: RunRow, actor_id: string, prompt_id: string) => string | null;

interface Wanted {
  attempt: AttemptRow;
  run: RunRow;
  spec: TeamSpec;
  member: Member;
  team_name: string;
  /** Null: it has to be made. */
  agent: AgentRow | null;
}

export class Preparing {
  readonly #context: AgentsContext;
  readonly #lifecycle: Lifecycle;
  readonly #attempts: Attempts;
  readonly #mail: PendingMail;
  /** Steps that go on side by side share a worktree, which is made once. */
  readonly #places = new KeyedQueue();

  constructor(context: AgentsContext, lifecycle: Lifecycle, attempts: Attempts, mail: PendingMail) {
    this.#context = context;
    this.#lifecycle = lifecycle;
    this.#attempts = attempts;
    this.#mail = mail;
  }

  async prepare({ payload: { attempt_num } }: Intent<'prepare'>): Promise<void> {
    const { store } = this.#context.options;
    try {
      const wanted = await store.read((reader) => findWanted(reader, attempt_num));
      if (!wanted) return;
      await this.#clear(wanted);
      const request = requestOf(wanted);
      const worktree = wanted.agent === null ? await this.#place(wanted, request) : null;
      await store.write((tx) => this.#give(tx, attempt_num, request, worktree));
    } catch (error) {
      if (!(error instanceof Problem) || isOutOfReach(error) || error.code === problems.draining().code) {
        throw error;
      }
      const final = error.kind === 'invalid' || error.kind === 'not_found';
      const failed = { kind: 'failed', error_text: error.message, final } as const;
      await store.write((tx) => this.#attempts.settle(tx, attempt_num, failed));
    }
    failpoint('step_prepared');
  }

  /** Of a plain agent nothing of before may go on, and no session that is being stopped, or cannot be talked to, may get a prompt. */
  async #clear({ agent, member }: Wanted): Promise<void> {
    if (!agent || !isLive(agent)) return;
    const { store } = this.#context.options;
    const takes = await store.read((reader) => {
      const session = findSession(reader, agent.session_id!);
      return session?.stopping !== 1 && loadAcpState(reader, session!.num).phase !== 'failed';
    });
    if (memberKind(member) === 'acp' && takes) return;
    const find = (reader: Reader) => this.#context.mustFind(reader, agent.id);
    await this.#lifecycle.stop(find, SERVICE, limits.stop_grace_ms).catch((error: unknown) => {
      // It ended by itself meanwhile.
      if (!(error instanceof Problem) || error.code !== problems.agentNotRunning().code) throw error;
    });
    const still = await store.read((reader) => isLive(find(reader)));
    // Not a Problem: looked at again later.
    if (still) throw new Error(`the end of ${agent.session_id} is not known yet`);
  }

  /** A member has one worktree for a run. */
  #place({ run, member, team_name }: Wanted, request: CreateAgent): Promise<Worktree> {
    const { folders } = this.#context.node(request.node_id);
    const shared = idFrom('agt', run.id, member.member_id);
    const name = `${team_name}-${member.member_id}`;
    const rights = {
      store: this.#context.options.store,
      all: false,
      mayOperate: (_: Reader, row: AgentRow) =>
        row.owner_id === run.created_by || row.team_num === run.team_num,
    };
    return this.#places.run(shared, () => place(folders, shared, { ...request, name }, rights));
  }

  #give(tx: Tx, attempt_num: number, request: CreateAgent, worktree: Worktree | null): void {
    const wanted = findWanted(tx, attempt_num);
    if (!wanted) return;
    const { attempt, run, member } = wanted;
    const row = wanted.agent ?? this.#insert(tx, wanted, request, worktree);
    const acp = memberKind(member) === 'acp';
    if (!acp) mustFit(stepInput(tx, run, attempt));
    const prompt_id = acp ? newId('prm') : null;
    const fresh = !isLive(row);
    if (prompt_id !== null) {
      const mail = this.#mail(tx, run, actorIdOf(member.member_id, run.team_id), prompt_id);
      const first = fresh || !wasGivenAny(tx, row.session_id!);
      const words = [wordsFor(tx, wanted, first), mail].filter((text) => text !== null);
      const content = [{ type: 'text', text: words.join('\n\n') }];
      const { created_by } = run;
      queuePrompt(tx, row.num, { id: prompt_id, content, created_by, created_at: this.#context.now() });
    }
    updateAttempt(tx, attempt.num, { prompt_id });
    if (fresh) {
      const { session_id } = this.#lifecycle.begin(tx, row, SERVICE);
      if (!acp) updateAttempt(tx, attempt.num, { session_id });
    } else Exchange.run(this.#context, tx, row.session_id!, sendNext);
    this.#context.publish(tx, row.id);
  }

  #insert(
    tx: Tx,
    { attempt, run, member }: Wanted,
    request: CreateAgent,
    worktree: Worktree | null,
  ): AgentRow {
    // It was there a moment ago, and was deleted.
    if (!worktree) throw problems.agentNotFound();
    const { member_id } = member;
    const membership = { team_num: run.team_num, run_num: run.num, member_id };
    const owner = { user_id: run.created_by, doer: SERVICE };
    return insertNew(this.#context, tx, attempt.agent_id, owner, request, worktree, membership);
  }
}

/** Null when it is over, or was given to its agent before. */
function findWanted(reader: Reader, attempt_num: number): Wanted | null {
  const attempt = attemptOfNum(reader, attempt_num);
  if (!attempt || attempt.over === 1 || attempt.session_id !== null || attempt.prompt_id !== null)
    return null;
  const run = runOfNum(reader, attempt.run_num)!;
  if (isRunOver(run)) return null;
  const spec = specOf(run);
  const member = spec.members.find(({ member_id }) => member_id === attempt.member_id)!;
  const team_name = teamOfNum(reader, run.team_num)!.name;
  return { attempt, run, spec, member, team_name, agent: findAgent(reader, attempt.agent_id) ?? null };
}

function requestOf({ attempt, run, member, team_name }: Wanted): CreateAgent {
  const { member_id } = member;
  const whole = [team_name, member_id, ...(memberKind(member) === 'plain' ? [attempt.step_key] : [])];
  const { env, ...agent } = member.agent!;
  return fromPreset({
    ...agent,
    env: { ...env },
    name: whole.filter(Boolean).join('-').slice(0, limits.name_chars_max),
    worktree_ref: null,
    labels: { team: team_name.slice(0, limits.label_chars_max), run: String(run.number), member: member_id },
    restart_policy: 'never',
    stdin: false,
    on_exit: 'kill',
    prompt: null,
    start: false,
  });
}

/** `first`: of what its agent's process hears of the run. */
function wordsFor(tx: Tx, { attempt, run, spec, member, team_name }: Wanted, first: boolean): string {
  const about = stepInput(tx, run, attempt);
  const words =
    'round' in about
      ? roundWords(about)
      : stepWords(attempt.step_key, findStep(tx, run.num, attempt.step_key)!.prompt, about);
  return first ? `${welcome({ team_name, spec, member })}\n\n${words}` : words;
}

function mustFit(input: object): void {
  if (Buffer.byteLength(JSON.stringify(input)) > limits.step_input_bytes_max)
    throw problems.stepInputTooLarge();
}

function isLive(row: AgentRow): boolean {
  return row.session_state === 'starting' || row.session_state === 'running';
}
