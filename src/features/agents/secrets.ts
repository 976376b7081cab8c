/**
 * Finds the secrets to redact in the output of a session: the values of its agent's variables, and the token for its calls
 * to the plane. They are determined once per session, because the variables of a running agent cannot change.
 */

import { Redactor, type Secret } from '../../core/redaction.ts';
import type { Reader } from '../../store/store.ts';
import { findPreset } from '../presets/rules/catalog.ts';
import { permissionEnv } from '../presets/rules/preset.ts';
import { limits } from './limits.ts';
import { findAgent, findSession } from './queries/agents.ts';

export interface SecretsOptions {
  /** `events.redact_env`, which can change while agents run. Tokens are always redacted. */
  redact_env(): boolean;
  /** Null while the internal listener is disabled. */
  actorToken(session_id: string): string | null;
}

interface SessionRedactors {
  everything: Redactor | null;
  token: Redactor | null;
}

export class Secrets {
  readonly #options: SecretsOptions;
  readonly #cache = new Map<string, SessionRedactors>();

  constructor(options: SecretsOptions) {
    this.#options = options;
  }

  /** The token for the session's calls to the plane; null while the actor listener is disabled. */
  actorToken(session_id: string): string | null {
    return this.#options.actorToken(session_id);
  }

  /** For long-lived readers: a function that returns the session's redactor, or null if there is nothing to redact. */
  async redactorOf(reader: Reader, session_id: string): Promise<() => Redactor | null> {
    const known = await this.#find(reader, session_id);
    this.#remember(session_id, known);
    return () => this.#choose(known);
  }

  /** The session's redactor, for one use; null if there is nothing to redact. */
  async redactor(reader: Reader, session_id: string | null): Promise<Redactor | null> {
    if (session_id === null) return null;
    let known = this.#cache.get(session_id);
    if (!known) {
      known = await this.#find(reader, session_id);
      this.#remember(session_id, known);
    }
    return this.#choose(known);
  }

  #choose({ everything, token }: SessionRedactors): Redactor | null {
    return this.#options.redact_env() ? everything : token;
  }

  async #find(reader: Reader, session_id: string): Promise<SessionRedactors> {
    const session = await findSession(reader, session_id);
    const agent = session && (await findAgent(reader, session.agent_id));
    const token = this.#options.actorToken(session_id);
    const own = token === null ? [] : [{ name: 'SVC_ACTOR_TOKEN', value: token }];
    const env = agent ? collectSecrets(JSON.parse(agent.env), agent.preset) : [];
    return { everything: Redactor.of([...own, ...env]), token: Redactor.of(own) };
  }

  #remember(session_id: string, known: SessionRedactors): void {
    this.#cache.delete(session_id);
    for (const [oldest] of this.#cache) {
      if (this.#cache.size < limits.redactions_cached_max) break;
      this.#cache.delete(oldest);
    }
    this.#cache.set(session_id, known);
  }
}

/** Values that a preset sets are public, so they are not secrets. */
function collectSecrets(env: Record<string, string>, preset: string | null): Secret[] {
  const found = preset === null ? null : findPreset(preset);
  const known = found && { ...found.env, ...permissionEnv(found) };
  return Object.entries(env).flatMap(([name, value]) => (known?.[name] === value ? [] : { name, value }));
}
