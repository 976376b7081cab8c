/**
 * The plane's end of the actor methods. It authenticates the caller, by a session's token or a token made from the shared
 * secret, and runs the method. Calls arrive at the plane's own listener, or nodes pass them on through their links. A node
 * is trusted only about its own identity: a session's token is valid only from the session's node.
 */

import { validate } from '../../api/validate.ts';
import type { Clock } from '../../base/clock.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { type Logger, RateLimitedWarning } from '../../base/log.ts';
import { Problem, problems } from '../../core/problem.ts';
import { type TokenSettings, TokenVerifier } from '../../link/trust/tokens.ts';
import type { Reader, Store } from '../../store/store.ts';
import { findSession, partOfTeam } from '../agents/queries/agents.ts';
import type { ActorMethods } from '../feature.ts';
import { actAs } from './acting.ts';
import {
  type ActorMethod,
  type ActorRequest,
  type ActorResult,
  actorMethods,
  isActorMethod,
} from './contract.ts';
import { limits } from './limits.ts';
import {
  type ActorCall,
  type ActorCaller,
  actingAs,
  type CallingSession,
  memberActorId,
} from './rules/actor.ts';
import type { SessionTokens } from './session-tokens.ts';

export interface ActorsDeps {
  store: Store;
  clock: Clock;
  log: Logger;
  session_tokens: SessionTokens;
  /** The settings for tokens, which are read at each call. */
  settings(): TokenSettings;
}

/** The claims of a verified token. */
type Credential = Omit<ActorCaller, 'ip'>;

type Methods = ActorMethods & {
  whoami(caller: ActorCaller, params: ActorRequest<'whoami'>): Promise<ActorResult<'whoami'>>;
};

export class Actors {
  readonly #deps: ActorsDeps;
  readonly #verifier: TokenVerifier;
  #methods: Methods | null = null;
  readonly #refusals: RateLimitedWarning;

  constructor(deps: ActorsDeps) {
    this.#deps = deps;
    this.#verifier = new TokenVerifier({ settings: deps.settings, clock: deps.clock, kind: 'actor' });
    this.#refusals = new RateLimitedWarning(deps.log, deps.clock, 'an actor call was rejected');
  }

  /** Must be called before the first call arrives. */
  open(methods: ActorMethods): void {
    this.#methods = { whoami: (caller, params) => this.#whoami(caller, params), ...methods };
  }

  /** Whether this plane has issued the token to a session, which may have ended. False for tokens made from the shared secret. */
  isGenuine(token: string): boolean {
    return this.#deps.session_tokens.sessionOf(token) !== null;
  }

  /** Returns the method's result; throws a Problem. */
  async call({ method, params, token, node_id, ip = null }: ActorCall): Promise<unknown> {
    const caller = { ...(await this.#authenticate(token, node_id)), ip };
    if (!isActorMethod(method)) {
      throw new Problem('not_found', 'unknown_method', 'this plane does not know the command');
    }
    const result = await this.#run(method, caller, params);
    if (Buffer.byteLength(JSON.stringify(result)) > limits.actor_result_bytes_max)
      throw problems.actorResultTooLarge();
    return result;
  }

  #run<M extends ActorMethod>(method: M, caller: ActorCaller, params: unknown): Promise<ActorResult<M>> {
    const request = validate(actorMethods[method].params, params, 'params') as ActorRequest<M>;
    const methods: { [N in ActorMethod]: (by: ActorCaller, requested_id: never) => Promise<unknown> } =
      this.#methods!;
    return methods[method](caller, request as never) as Promise<ActorResult<M>>;
  }

  // --- methods --------------------------------------------------------------------------------------------------------

  async #whoami(
    caller: ActorCaller,
    { actor_id: requested_id }: ActorRequest<'whoami'>,
  ): Promise<ActorResult<'whoami'>> {
    const { session } = caller;
    const acting =
      requested_id === undefined && caller.actor_id === null
        ? null
        : await this.#deps.store.read((reader) => actAs(reader, caller, { actor_id: requested_id }));
    const user_id = acting?.kind === 'human' ? acting.caller.user_id : null;
    return {
      actor_id: acting?.actor_id ?? null,
      agent_id: session?.agent_id ?? null,
      session_id: session?.id ?? null,
      node_id: session?.node_id ?? null,
      user_id: user_id ?? session?.owner_id ?? null,
      team_id: acting?.team?.id ?? null,
      run_id: acting?.run?.id ?? null,
      role: acting?.role ?? null,
    };
  }

  // --- who calls ------------------------------------------------------------------------------------------------------

  async #authenticate(token: string | null, node_id: string): Promise<Credential> {
    if (token === null) return { actor_id: null, session: null };
    const bounded = token.length <= sharedLimits.link_token_chars_max ? token : '';
    return bounded.split('.').length === 3
      ? this.#bySecret(bounded, node_id)
      : this.#bySession(bounded, node_id);
  }

  async #bySession(token: string, node_id: string): Promise<Credential> {
    const session_id = this.#deps.session_tokens.sessionOf(token);
    if (session_id === null) throw this.#refused('the token is not one of this plane', node_id);
    const session = await this.#liveSession(session_id, node_id);
    if (session.node_id !== node_id) {
      throw this.#refused(`session ${session_id} is on node ${session.node_id}`, node_id);
    }
    return { actor_id: ownActor(session), session };
  }

  async #bySecret(token: string, node_id: string): Promise<Credential> {
    const { sub, session_id } = await this.#verifier.verify(token).catch((error: Error) => {
      throw this.#refused(error.message, node_id);
    });
    if (typeof sub !== 'string' || sub.length > sharedLimits.actor_id_chars_max) {
      throw this.#refused('the subject is no actor', node_id);
    }
    const named = sub === '' ? undefined : sub;
    const session = typeof session_id === 'string' ? await this.#liveSession(session_id, node_id) : null;
    const own = { actor_id: ownActor(session), session };
    return { ...own, actor_id: actingAs(own, named) };
  }

  /**
   * Throws `unauthorized` for a session that is over, and for an unknown one: the session of a deleted agent is unknown, and
   * its processes may still run.
   */
  async #liveSession(session_id: string, node_id: string): Promise<CallingSession> {
    const session = await this.#deps.store.read((reader) => findLive(reader, session_id));
    if (session === null) throw this.#refused(`session ${session_id} is over`, node_id);
    return session;
  }

  /** The caller gets the same message for every rejection; the log has the reason. */
  #refused(reason: string, node_id: string): Problem {
    this.#refusals.warn(reason, { node_id });
    return problems.actorUnauthorized();
  }
}

/** The member that a session belongs to; null if it has no team or does not exist. */
function ownActor(session: CallingSession | null): string | null {
  const member = session?.member ?? null;
  return member && memberActorId(member.member_id, member.team_id);
}

/** A session that has not ended, and its owner. */
async function findLive(reader: Reader, session_id: string): Promise<CallingSession | null> {
  const session = await findSession(reader, session_id);
  if (!session || session.state === 'ended') return null;
  const { agent_id, node_id, agent_num } = session;
  const agent = await partOfTeam(reader, agent_num);
  if (!agent) return null;
  const { owner_id, team_num, team_id, run_num, member_id } = agent;
  const is_member = team_num !== null && team_id !== null && member_id !== null;
  const member = is_member ? { member_id, team_num, team_id, run_num } : null;
  return { id: session_id, agent_id, node_id, owner_id, member };
}
