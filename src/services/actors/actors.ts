/**
 * The plane's end of the actor surface: who calls, by a session's token or by one made from the shared secret, and what
 * each method does. Calls come in here from the plane's own door and, passed up by nodes, through their links. A node is
 * believed nothing but that it is itself: a session's token is good only from the node that the session is on.
 */
import type { Clock } from '../../base/clock.ts';
import { limits } from '../../base/limits.ts';
import { type Logger, RareWarning } from '../../base/log.ts';
import {
  type ActorMethod,
  type ActorRequest,
  type ActorResult,
  actorMethods,
  isActorMethod,
} from '../../contract/actor.ts';
import { validate } from '../../contract/validate.ts';
import { type ActorCaller, actingAs, usernameOf } from '../../domain/actor.ts';
import { Problem, problems } from '../../domain/problem.ts';
import { type TokenSettings, TokenVerifier } from '../../link/tokens.ts';
import { findSession } from '../../store/agents.ts';
import type { Reader, Store } from '../../store/store.ts';
import type { SessionTokens } from './session-tokens.ts';

export interface ActorsDeps {
  store: Store;
  clock: Clock;
  log: Logger;
  session_tokens: SessionTokens;
  /** What tokens are made from, asked at each call. */
  settings(): TokenSettings;
}

export interface ActorCall {
  method: string;
  params: unknown;
  token: string;
  /** The node that the call came in by. */
  node_id: string;
}

type Methods = {
  [M in ActorMethod]: (caller: ActorCaller, params: ActorRequest<M>) => Promise<ActorResult<M>>;
};

export class Actors {
  readonly #deps: ActorsDeps;
  readonly #verifier: TokenVerifier;
  readonly #methods: Methods;
  readonly #refusals: RareWarning;

  constructor(deps: ActorsDeps) {
    this.#deps = deps;
    this.#verifier = new TokenVerifier({ settings: deps.settings, clock: deps.clock, kind: 'actor' });
    this.#refusals = new RareWarning(deps.log, deps.clock, 'an actor was refused');
    this.#methods = { whoami: (caller, params) => this.#whoami(caller, params) };
  }

  /** Answers the method's result; throws a Problem. */
  async call({ method, params, token, node_id }: ActorCall): Promise<unknown> {
    const caller = await this.#authenticate(token, node_id);
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
    return this.#methods[method](caller, request);
  }

  // --- methods --------------------------------------------------------------------------------------------------------

  async #whoami(
    caller: ActorCaller,
    { actor_id: asked }: ActorRequest<'whoami'>,
  ): Promise<ActorResult<'whoami'>> {
    const actor_id = actingAs(caller, asked);
    const { session } = caller;
    const user_id = actor_id === null ? null : await this.#userOf(actor_id);
    return {
      actor_id,
      agent_id: session?.agent_id ?? null,
      session_id: session?.id ?? null,
      node_id: session?.node_id ?? null,
      user_id: user_id ?? session?.owner_id ?? null,
    };
  }

  /** Throws `unknown actor: <id>`. */
  async #userOf(actor_id: string): Promise<string> {
    const username = usernameOf(actor_id);
    const user = await this.#deps.store.read((reader) =>
      username === null
        ? undefined
        : reader.get(reader.sql.selectFrom('users').select('id').where('username', '=', username)),
    );
    if (!user) throw new Problem('invalid', 'unknown_actor', `unknown actor: ${actor_id}`);
    return user.id;
  }

  // --- who calls ------------------------------------------------------------------------------------------------------

  async #authenticate(token: string, node_id: string): Promise<ActorCaller> {
    const bounded = token.length <= limits.link_token_chars_max ? token : '';
    return bounded.split('.').length === 3
      ? this.#bySecret(bounded, node_id)
      : this.#bySession(bounded, node_id);
  }

  async #bySession(token: string, node_id: string): Promise<ActorCaller> {
    const session_id = this.#deps.session_tokens.sessionOf(token);
    if (session_id === null) throw this.#refused('the token is not one of this plane', node_id);
    const session = await this.#deps.store.read((reader) => findLive(reader, session_id));
    if (session === null) throw this.#refused(`session ${session_id} is over`, node_id);
    if (session.node_id !== node_id) {
      throw this.#refused(`session ${session_id} is on node ${session.node_id}`, node_id);
    }
    return { kind: 'session', actor_id: null, session };
  }

  async #bySecret(token: string, node_id: string): Promise<ActorCaller> {
    const { sub, session_id } = await this.#verifier.verify(token).catch((error: Error) => {
      throw this.#refused(error.message, node_id);
    });
    if (typeof sub !== 'string' || sub.length > limits.actor_id_chars_max) {
      throw this.#refused('the subject is no actor', node_id);
    }
    const session =
      typeof session_id === 'string'
        ? await this.#deps.store.read((reader) => findLive(reader, session_id))
        : null;
    return { kind: 'secret', actor_id: sub === '' ? null : sub, session };
  }

  /** Every refusal is the same word; the log says which it was. */
  #refused(reason: string, node_id: string): Problem {
    this.#refusals.warn(reason, { node_id });
    return problems.actorUnauthorized();
  }
}

/** A session that is not over, and whose it is. */
function findLive(reader: Reader, session_id: string): ActorCaller['session'] {
  const session = findSession(reader, session_id);
  if (!session || session.state === 'ended') return null;
  const { agent_id, node_id, agent_num } = session;
  const agent = reader.get(reader.sql.selectFrom('agents').select('owner_id').where('num', '=', agent_num));
  return agent ? { id: session_id, agent_id, node_id, owner_id: agent.owner_id } : null;
}
