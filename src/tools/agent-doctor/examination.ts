/**
 * Runs the checks in order, on two processes of one agent. The first one is started, prompted, cancelled and killed.
 * The second one must find the conversation again, and exit on request.
 */
import {
  type InitializeResponse,
  methods,
  type NewSessionResponse,
  PROTOCOL_VERSION,
} from '@agentclientprotocol/sdk';
import { sleep } from '../../base/async.ts';
import { commandLine } from '../../base/proc.ts';
import { limits } from '../limits.ts';
import { Agent, type AgentOptions, type Watch } from './agent.ts';
import {
  judgeCancel,
  judgeLoad,
  judgeModel,
  judgeOrphans,
  judgeSession,
  judgeSignIn,
  judgeStart,
  judgeStdout,
  judgeTerm,
  judgeTurn,
} from './judge.ts';
import type { Leftovers } from './leftovers.ts';
import { setMode } from './mode.ts';
import type { ModelServer } from './model/server.ts';
import { firstAllowed, firstRejected, judgeAsked, judgePermission } from './permission.ts';
import { fetchPrompt, newWord, recallPrompt, rememberPrompt, runPrompt, workPrompt } from './prompts.ts';
import { type Check, type CheckName, checkNames, type Finding, failed, skipped } from './report.ts';
import type { Workspace } from './workspace.ts';

/** JSON-RPC's error code for "sign-in required". */
const AUTH_REQUIRED = -32000;

export interface ExaminationOptions {
  agent: AgentOptions;
  workspace: Workspace;
  leftovers: Leftovers;
  model: ModelServer | null;
  /** Replaces the doctor's own prompt for the permission check. */
  prompt: string | null;
  mode: string | null;
  /** Whether its preset promises that it asks before it acts. */
  must_ask: boolean;
  /** Time limit of each check. */
  timeout_ms: number;
  signal: AbortSignal;
  onCheck: (name: CheckName) => void;
}

export class Examination {
  readonly checks: Check[] = [];
  /** The result of `initialize`; null: the agent did not start. */
  initialize_result: InitializeResponse | null = null;
  stderr = '';
  readonly #options: ExaminationOptions;
  readonly #word = newWord();
  #agent: Agent | null = null;
  #session: NewSessionResponse | null = null;
  #needs_sign_in = false;
  /** The session is idle and accepts prompts. */
  #idle = false;
  /** What was recorded in the first turn. */
  #first: Watch | null = null;
  #work_prompts = 0;

  constructor(options: ExaminationOptions) {
    this.#options = options;
  }

  /** Rejects only if aborted; any defect of the agent is a finding. */
  async run(): Promise<void> {
    const { model, agent } = this.#options;
    try {
      await this.#check('start', () => this.#start());
      await this.#check('session', () => this.#openSession());
      this.#record('sign-in', this.#signIn());
      await this.#check('turn', () => this.#firstTurn());
      this.#record('permission', await this.#permission());
      await this.#check('cancel', () => this.#cancel());
      await this.#check('second prompt', () => this.#secondPrompt());
      await this.#check('permission to run', () => this.#asksFirst(runPrompt, firstAllowed));
      await this.#check('permission to fetch', () => this.#asksFirst(fetchPrompt, firstRejected));
      await this.#check('orphans after KILL', () => this.#kill());
      await this.#check('load after KILL', () => this.#load());
      await this.#check('TERM', () => this.#terminate());
      await this.#check('orphans after TERM', () => this.#orphansAfterTerm());
      this.#record('stdout', agent.facts.frames > 0 ? judgeStdout(agent.facts) : skipped('it wrote nothing'));
      if (model) this.#record('model', judgeModel(model.requests));
    } finally {
      this.#detach();
    }
  }

  async #check(name: CheckName, examine: () => Promise<Finding>): Promise<void> {
    const { signal, onCheck } = this.#options;
    signal.throwIfAborted();
    onCheck(name);
    const started = performance.now();
    const finding = await examine().catch((error: Error) => {
      signal.throwIfAborted();
      return failed(this.#messageOf(error));
    });
    this.#record(name, finding, performance.now() - started);
  }

  #record(name: CheckName, finding: Finding, took_ms: number | null = null): void {
    const duration_ms = took_ms === null || finding.grade === 'skipped' ? null : Math.round(took_ms);
    this.checks.push({ number: checkNames.indexOf(name) + 1, name, ...finding, duration_ms });
  }

  // --- the first process ----------------------------------------------------------------------------------------------

  async #start(): Promise<Finding> {
    const result = await this.#begin();
    if (result.protocolVersion === PROTOCOL_VERSION) this.initialize_result = result;
    return judgeStart(result);
  }

  /** Starts a process and initializes it. */
  async #begin(): Promise<InitializeResponse> {
    const { agent: options, leftovers } = this.#options;
    this.#detach();
    this.#agent = await Agent.start(options);
    leftovers.watch(this.#agent.pid);
    this.#agent.onPermission = async (request) => firstAllowed(request);
    return this.#withTimeLimit(this.#agent.initialize());
  }

  async #openSession(): Promise<Finding> {
    if (!this.initialize_result) return skipped('it did not start');
    const session = await this.#newSession().catch((error: Error & { code?: number }) => {
      this.#needs_sign_in = error.code === AUTH_REQUIRED;
      if (this.#needs_sign_in) return null;
      throw error;
    });
    if (!session) return skipped('needs a sign-in');
    if (typeof session.sessionId !== 'string') return failed('opened a session without an id');
    this.#session = session;
    this.#idle = true;
    const { mode } = this.#options;
    const must_set = mode !== null && session.modes?.currentModeId !== mode;
    return judgeSession(
      session,
      mode,
      must_set ? await this.#withTimeLimit(setMode(this.#agent!, session, mode)) : null,
    );
  }

  #newSession(): Promise<NewSessionResponse> {
    const params = { cwd: this.#options.workspace.work, mcpServers: [] };
    return this.#withTimeLimit(this.#agent!.request(methods.agent.session.new, params));
  }

  #signIn(): Finding {
    if (!this.initialize_result) return skipped('it did not start');
    return this.#session || this.#needs_sign_in
      ? judgeSignIn(this.#needs_sign_in, this.initialize_result)
      : skipped('no session');
  }

  async #firstTurn(): Promise<Finding> {
    if (!this.#session) return skipped('no session');
    this.#first = this.#agent!.watch();
    return judgeTurn(this.#first, await this.#turn(this.#workPrompt()));
  }

  async #permission(): Promise<Finding> {
    return this.#first
      ? judgePermission(this.#first, await this.#options.workspace.newFiles(), this.#options.must_ask)
      : skipped('no session');
  }

  async #asksFirst(prompt: string, answer: typeof firstAllowed): Promise<Finding> {
    if (!this.#options.must_ask) return skipped('no preset that guarantees that it asks');
    if (!this.#idle) return skipped('no idle session');
    const agent = this.#agent!;
    const watch = agent.watch();
    agent.onPermission = async (request) => answer(request);
    await this.#turn(prompt);
    return judgeAsked(watch);
  }

  async #cancel(): Promise<Finding> {
    if (!this.#idle) return skipped('no idle session');
    const agent = this.#agent!;
    agent.watch();
    const asked = Promise.withResolvers<'asked'>();
    const released = Promise.withResolvers<void>();
    agent.onPermission = async () => {
      asked.resolve('asked');
      await released.promise;
      return { outcome: 'cancelled' };
    };
    try {
      const turn = this.#turn(this.#workPrompt()).catch((error: Error) => {
        if (error instanceof TimedOut) throw error;
        return `an error (${error.message})`;
      });
      const first = await Promise.race([asked.promise, turn]);
      if (first !== 'asked') return skipped(`it did not ask this time (${first})`);
      let since = performance.now();
      await agent.cancel(this.#session!.sessionId);
      const ended_without_answer = (await this.#within(turn, limits.doctor_cancel_ms)) !== LATE;
      if (!ended_without_answer) since = performance.now();
      released.resolve();
      return judgeCancel(await turn, ended_without_answer, Math.round(performance.now() - since));
    } finally {
      released.resolve();
      agent.onPermission = async (request) => firstAllowed(request);
    }
  }

  async #secondPrompt(): Promise<Finding> {
    if (!this.#idle) return skipped('no idle session');
    const watch = this.#agent!.watch();
    return judgeTurn(watch, await this.#turn(rememberPrompt(this.#word)));
  }

  /** Returns the stop reason. A turn that does not end leaves the session busy. */
  async #turn(prompt: string): Promise<string> {
    this.#idle = false;
    const { sessionId } = this.#session!;
    try {
      const answer = await this.#withTimeLimit(this.#agent!.prompt(sessionId, prompt));
      this.#idle = true;
      return String(answer?.stopReason);
    } catch (error) {
      // An error is an answer too: the session accepts the next prompt.
      this.#idle = !(error instanceof TimedOut) && !this.#agent!.ending;
      throw error;
    }
  }

  #workPrompt(): string {
    this.#work_prompts++;
    return this.#options.prompt ?? workPrompt(`svc-doctor-${this.#work_prompts}.txt`);
  }

  // --- its end, and the second process --------------------------------------------------------------------------------

  async #kill(): Promise<Finding> {
    const agent = this.#agent;
    if (!agent) return skipped('it did not start');
    if (!agent.ending) agent.signal('SIGKILL');
    await this.#withTimeLimit(agent.ended);
    return this.#orphans();
  }

  async #load(): Promise<Finding> {
    if (!this.#session) return skipped('no session');
    const { loadSession, sessionCapabilities } = this.initialize_result!.agentCapabilities ?? {};
    if (!loadSession && !sessionCapabilities?.resume) return skipped('not offered');
    const how = loadSession ? 'load' : 'resume';
    await this.#begin();
    const before = this.#agent!.watch();
    const { sessionId } = this.#session;
    const params = { sessionId, cwd: this.#options.workspace.work, mcpServers: [] };
    await this.#withTimeLimit(this.#agent!.request(methods.agent.session[how], params));
    const replayed = before.text.includes(this.#word) || before.replay.includes(this.#word);
    const reply = this.#agent!.watch();
    await this.#turn(recallPrompt);
    return judgeLoad(how, replayed, reply.text.includes(this.#word));
  }

  async #terminate(): Promise<Finding> {
    if (!this.#session) return skipped('no session');
    if (this.#agent!.ending) {
      // The folders that it uses for a session must exist.
      await this.#begin();
      await this.#newSession();
    }
    const agent = this.#agent!;
    const started = performance.now();
    agent.signal('SIGTERM');
    const ending = await this.#within(agent.ended, limits.doctor_end_ms);
    if (ending !== LATE) return judgeTerm(ending, Math.round(performance.now() - started));
    agent.signal('SIGKILL');
    await this.#withTimeLimit(agent.ended);
    return judgeTerm(null, 0);
  }

  async #orphansAfterTerm(): Promise<Finding> {
    return this.#session && this.#agent!.ending ? this.#orphans() : skipped('no session');
  }

  /** Finds the processes that the agent left behind, and ends them. */
  async #orphans(): Promise<Finding> {
    const { leftovers, signal } = this.#options;
    const processes = await leftovers.remaining(signal);
    const orphans = processes.map((stat) => ({ pid: stat.pid, command: commandLine(stat) }));
    leftovers.kill();
    return judgeOrphans(orphans);
  }

  /** Stops watching a process and keeps its last output. */
  #detach(): void {
    this.stderr += this.#agent?.stderr ?? '';
    this.#idle = false;
  }

  // --- time and errors ------------------------------------------------------------------------------------------------

  async #withTimeLimit<T>(work: Promise<T>): Promise<T> {
    const { timeout_ms } = this.#options;
    const result = await this.#within(work, timeout_ms);
    if (result === LATE) throw new TimedOut(timeout_ms);
    return result;
  }

  async #within<T>(work: Promise<T>, ms: number): Promise<T | typeof LATE> {
    const { signal } = this.#options;
    const done = new AbortController();
    try {
      const late = sleep(ms, AbortSignal.any([signal, done.signal])).then((): typeof LATE => LATE);
      const result = await Promise.race([work, late]);
      signal.throwIfAborted();
      return result;
    } finally {
      done.abort();
    }
  }

  #messageOf(error: Error): string {
    const data = (error as { data?: unknown }).data;
    const details = data === undefined ? '' : ` ${JSON.stringify(data)}`;
    const last = this.#agent?.ending && this.#agent.stderr.trimEnd().split('\n').at(-1);
    return `${error.message}${details}${last ? `; it wrote: ${last}` : ''}`;
  }
}

const LATE = Symbol('late');

class TimedOut extends Error {
  constructor(timeout_ms: number) {
    super(`no answer within ${timeout_ms / 1000} s`);
  }
}
