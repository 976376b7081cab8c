/**
 * What an agent must not be heard saying: the values of its own variables, and what it proves itself with. Which they are
 * for a session is worked out once; nobody can change the variables of an agent that runs.
 */
import { limits } from '../../base/limits.ts';
import { permissionEnv } from '../../domain/preset.ts';
import { findPreset } from '../../domain/presets.ts';
import { Redactor, type Secret } from '../../domain/redaction.ts';
import { findAgent, findSession } from '../../store/agents.ts';
import type { Reader } from '../../store/store.ts';

export interface SecretsOptions {
  /** Asked each time: it can change while agents run. Their tokens are taken out in any case. */
  redact_env(): boolean;
  /** Null while the actor surface is switched off. */
  actorToken(session_id: string): string | null;
}

interface Known {
  everything: Redactor | null;
  token: Redactor | null;
}

export class Secrets {
  readonly #options: SecretsOptions;
  readonly #known = new Map<string, Known>();

  constructor(options: SecretsOptions) {
    this.#options = options;
  }

  /** What takes the secrets of a session out, as long as it lives; null: there are none. */
  redactorOf(reader: Reader, session_id: string): () => Redactor | null {
    const known = this.#find(reader, session_id);
    this.#remember(session_id, known);
    return () => this.#choose(known);
  }

  /** The same for one use. */
  redactor(reader: Reader, session_id: string | null): Redactor | null {
    if (session_id === null) return null;
    let known = this.#known.get(session_id);
    if (!known) {
      known = this.#find(reader, session_id);
      this.#remember(session_id, known);
    }
    return this.#choose(known);
  }

  #choose({ everything, token }: Known): Redactor | null {
    return this.#options.redact_env() ? everything : token;
  }

  #find(reader: Reader, session_id: string): Known {
    const session = findSession(reader, session_id);
    const agent = session && findAgent(reader, session.agent_id);
    const token = this.#options.actorToken(session_id);
    const own = token === null ? [] : [{ name: 'SVC_ACTOR_TOKEN', value: token }];
    const env = agent ? secretsOf(JSON.parse(agent.env), agent.preset) : [];
    return { everything: Redactor.of([...own, ...env]), token: Redactor.of(own) };
  }

  #remember(session_id: string, known: Known): void {
    this.#known.delete(session_id);
    for (const [oldest] of this.#known) {
      if (this.#known.size < limits.redactions_cached_max) break;
      this.#known.delete(oldest);
    }
    this.#known.set(session_id, known);
  }
}

/** What a preset sets everybody knows. */
function secretsOf(env: Record<string, string>, preset: string | null): Secret[] {
  const found = preset === null ? null : findPreset(preset);
  const known = found && { ...found.env, ...permissionEnv(found) };
  return Object.entries(env).flatMap(([name, value]) => (known?.[name] === value ? [] : { name, value }));
}
