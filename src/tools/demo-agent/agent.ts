/** The demo agent's side of ACP: handles each request. The official SDK reads, validates and answers frames. */
import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import {
  type AgentApp,
  type AgentContext,
  agent,
  methods,
  PROTOCOL_VERSION,
  type PromptRequest,
  RequestError,
  type StopReason,
} from '@agentclientprotocol/sdk';
import { version } from '../../base/version.ts';
import {
  availableCommands,
  configOptions,
  type ModeId,
  modeIds,
  modeState,
  SIGN_IN,
  VERBOSITY,
  verbosities,
} from './offers.ts';
import type { Pace } from './pace.ts';
import { Rng } from './rng.ts';
import { Session } from './session.ts';
import type { SessionFiles, SessionState } from './session-files.ts';
import type { Membership } from './team-turn.ts';
import { runTurn } from './turn.ts';
import { TurnOutput } from './turn-output.ts';

export interface DemoAgentOptions {
  seed: number;
  pace: Pace;
  files: SessionFiles;
  /** Opens no session before `authenticate`. */
  auth: boolean;
  /** Initial mode of new sessions. */
  mode: ModeId;
  /** Null: it is not in a team. */
  membership: Membership | null;
}

const unused = { verbosity: 'short', always: false, turns: 0, title: null } as const;

export class DemoAgent {
  readonly #options: DemoAgentOptions;
  readonly #sessions = new Map<string, Session>();
  #signed_in: boolean;

  constructor(options: DemoAgentOptions) {
    this.#options = options;
    this.#signed_in = !options.auth;
  }

  app(): AgentApp {
    const { authenticate, initialize, session } = methods.agent;
    return agent({ name: 'svc-demo-agent' })
      .onRequest(initialize, () => ({
        protocolVersion: PROTOCOL_VERSION,
        agentInfo: { name: 'svc-demo-agent', title: 'Demo agent', version },
        agentCapabilities: { loadSession: true, sessionCapabilities: { resume: {} } },
        authMethods: this.#options.auth
          ? [{ id: SIGN_IN, name: 'Sign in', description: 'Needs no input' }]
          : [],
      }))
      .onRequest(authenticate, ({ params }) => {
        if (params.methodId !== SIGN_IN) throw RequestError.invalidParams({ methodId: params.methodId });
        this.#signed_in = true;
      })
      .onRequest(session.new, async ({ params, client }) => {
        const sessionId = randomUUID();
        await this.#mayOpen(params.cwd);
        const { files, mode } = this.#options;
        const initialState: SessionState = { ...unused, mode, asked: [] };
        await files.create(sessionId, initialState).catch(({ message }) => {
          throw RequestError.internalError(undefined, `sessions cannot be stored: ${message} (see --state)`);
        });
        return { sessionId, ...this.#open(client, new Session(sessionId, params.cwd, initialState, files)) };
      })
      .onRequest(session.load, async ({ params, client }) => {
        const { stored, updates } = await this.#stored(params);
        for (const update of updates) {
          await client.notify(methods.client.session.update, { sessionId: stored.id, update });
        }
        return this.#open(client, stored);
      })
      .onRequest(session.resume, async ({ params, client }) => {
        const { stored } = await this.#stored(params);
        return this.#open(client, stored);
      })
      .onRequest(session.setMode, async ({ params }) => {
        const mode = oneOf(modeIds, params.modeId);
        await this.#session(params.sessionId).change({ mode });
      })
      .onRequest(session.setConfigOption, async ({ params }) => {
        if (params.configId !== VERBOSITY) throw RequestError.invalidParams({ configId: params.configId });
        const verbosity = oneOf(verbosities, params.value);
        await this.#session(params.sessionId).change({ verbosity });
        return { configOptions: configOptions(verbosity) };
      })
      .onRequest(session.prompt, async ({ params, client, signal }) => ({
        stopReason: await this.#prompt(params, client, signal),
      }))
      .onNotification(session.cancel, ({ params }) => this.#sessions.get(params.sessionId)?.cancel());
  }

  /** Resolves when every turn has ended, so that everything is stored. */
  async idle(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session.idle()));
  }

  async #prompt(
    { sessionId, prompt }: PromptRequest,
    client: AgentContext,
    request: AbortSignal,
  ): Promise<StopReason> {
    const session = this.#session(sessionId);
    if (session.busy) throw RequestError.invalidRequest(undefined, 'a turn is in progress');
    const text = prompt.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');
    return session.turn(async (cancelled) => {
      const signal = AbortSignal.any([request, cancelled]);
      try {
        await session.change({ turns: session.state.turns + 1 });
        for (const content of prompt) {
          await session.keep({ update: { sessionUpdate: 'user_message_chunk', content } });
        }
        const { seed, pace, membership } = this.#options;
        const rng = new Rng(seed, session.state.turns, text);
        return await runTurn(new TurnOutput({ client, session, pace, rng, signal }), text, membership);
      } catch (error) {
        if (signal.aborted) return 'cancelled';
        throw error;
      }
    });
  }

  /** The response for an opened session; the commands are announced after it. */
  #open(client: AgentContext, session: Session) {
    this.#sessions.set(session.id, session);
    setImmediate(() => {
      const update = { sessionUpdate: 'available_commands_update' as const, availableCommands };
      client.notify(methods.client.session.update, { sessionId: session.id, update }).catch(() => {});
    });
    const { mode, verbosity } = session.state;
    return { modes: modeState(mode), configOptions: configOptions(verbosity) };
  }

  async #stored({ sessionId, cwd }: { sessionId: string; cwd: string }) {
    await this.#mayOpen(cwd);
    if (this.#sessions.get(sessionId)?.busy)
      throw RequestError.invalidRequest(undefined, 'a turn is in progress');
    const found = await this.#options.files.read(sessionId);
    if (found === null) throw RequestError.sessionNotFound(sessionId);
    const stored = new Session(sessionId, cwd, found.state, this.#options.files);
    return { stored, updates: found.updates };
  }

  async #mayOpen(cwd: string): Promise<void> {
    if (!this.#signed_in) throw RequestError.authRequired();
    const folder = isAbsolute(cwd) && (await stat(cwd).catch(() => null))?.isDirectory();
    if (!folder) throw RequestError.invalidParams({ cwd }, 'cwd must be the absolute path of a folder');
  }

  #session(id: string): Session {
    const session = this.#sessions.get(id);
    if (!session) throw RequestError.sessionNotFound(id);
    return session;
  }
}

function oneOf<T>(choices: readonly T[], value: unknown): T {
  const found = choices.find((choice) => choice === value);
  if (found === undefined) throw RequestError.invalidParams({ value, choices });
  return found;
}
