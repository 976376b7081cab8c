/** The features of a plane. Merges their slots, and calls their hooks in order. */
import { operationIds } from '../api/routes.ts';
import type { Handlers, ResourceChecks } from '../server/call.ts';
import type { Reader } from '../store/store.ts';
import type { FactHandlers } from '../work/facts.ts';
import type { IntentHandlers } from '../work/outbox.ts';
import type { TimerHandlers } from '../work/timers.ts';
import { actorMethods } from './actors/contract.ts';
import type {
  ActorMethods,
  Extensions,
  Feature,
  RemoteNodes,
  SessionEnvironment,
  SessionHooks,
} from './feature.ts';

const slots = ['routes', 'resources', 'actor_methods', 'facts', 'intents', 'timers'] as const;
type Slot = (typeof slots)[number];

export class FeatureSet {
  readonly #features: Feature[] = [];

  /** Adds a feature and returns it; the features it uses must be added first. Throws if two features fill the same slot. */
  add<F extends Feature>(feature: F): F {
    for (const slot of slots) {
      for (const key of Object.keys(feature[slot] ?? {})) {
        const other = this.#features.find((feature) => Object.hasOwn(feature[slot] ?? {}, key));
        if (other) throw new Error(`${slot}.${key} is in two features: ${other.name} and ${feature.name}`);
      }
    }
    this.#features.push(feature);
    return feature;
  }

  /** Throws if an operation has no handler. */
  routes(): Handlers {
    const routes = this.#merge('routes');
    const missing = operationIds.filter((id) => !Object.hasOwn(routes, id));
    if (missing.length > 0) throw new Error(`no feature handles ${missing.join(', ')}`);
    return routes as Handlers;
  }

  resources(): ResourceChecks {
    return this.#merge('resources');
  }

  /** Throws if a method has no implementation. */
  actorMethods(): ActorMethods {
    const methods = this.#merge('actor_methods');
    const missing = Object.keys(actorMethods).filter(
      (name) => name !== 'whoami' && !Object.hasOwn(methods, name),
    );
    if (missing.length > 0) throw new Error(`no feature implements ${missing.join(', ')}`);
    return methods as ActorMethods;
  }

  facts(): Record<string, FactHandlers> {
    return this.#merge('facts');
  }

  intents(): IntentHandlers {
    return this.#merge('intents') as IntentHandlers;
  }

  timers(): Partial<TimerHandlers> {
    return this.#merge('timers');
  }

  async start(): Promise<void> {
    for (const feature of this.#features) await feature.start?.();
  }

  warnings(): string[] {
    return this.#features.flatMap((feature) => feature.warnings?.() ?? []);
  }

  /** Calls `failed` for each feature whose sweep throws, and continues with the next one. */
  async sweep(failed: (feature: string, error: unknown) => void): Promise<void> {
    for (const feature of this.#features) {
      await feature.sweep?.().catch((error: unknown) => failed(feature.name, error));
    }
  }

  /** Closes all features in reverse order, even if some fail, and then throws their errors. */
  async close(): Promise<void> {
    const errors: unknown[] = [];
    for (const feature of this.#features.toReversed()) {
      await feature.close?.().catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) throw new AggregateError(errors, 'features could not be closed');
  }

  /** The hooks of all features, including those that are added later. */
  readonly session: SessionHooks = {
    environment: async (reader, session_id) => {
      const found: SessionEnvironment[] = [];
      for (const hook of this.#hooks('environment')) found.push(await hook(reader, session_id));
      return {
        env: Object.assign({}, ...found.map(({ env }) => env)),
        step_input: found.find(({ step_input }) => step_input !== null)?.step_input ?? null,
      };
    },
    beforeStop: async (...args) => {
      for (const hook of this.#hooks('beforeStop')) await hook(...args);
    },
    onExit: async (...args) => {
      for (const hook of this.#hooks('onExit')) await hook(...args);
    },
    onStdinWritten: async (...args) => {
      for (const hook of this.#hooks('onStdinWritten')) await hook(...args);
    },
    onFrames: async (batch) => {
      const [hook] = this.#hooks('onFrames');
      return hook ? hook(batch) : batch.pieces.length;
    },
    awaitsAnswer: async (...args) => {
      for (const hook of this.#hooks('awaitsAnswer')) if (await hook(...args)) return true;
      return false;
    },
  };

  readonly extensions: Extensions = {
    onAgentCreated: async (...args) => {
      for (const extension of this.#extensions('onAgentCreated')) await extension(...args);
    },
    promptAgent: async (...args) => {
      for (const extension of this.#extensions('promptAgent')) await extension(...args);
    },
    onWorktreeReleased: async (...args) => {
      for (const extension of this.#extensions('onWorktreeReleased')) await extension(...args);
    },
    onTokenRevoked: async (...args) => {
      for (const extension of this.#extensions('onTokenRevoked')) await extension(...args);
    },
    onTokensRevoked: async (...args) => {
      for (const extension of this.#extensions('onTokensRevoked')) await extension(...args);
    },
    onUserRenamed: async (...args) => {
      for (const extension of this.#extensions('onUserRenamed')) await extension(...args);
    },
    passkeysOf: async (user_id) => {
      const found = this.#extensions('passkeysOf').map((extension) => extension(user_id));
      return (await Promise.all(found)).flat();
    },
    notifyLeader: async (...args) => {
      for (const extension of this.#extensions('notifyLeader')) await extension(...args);
    },
    participantsOf: async (...args) => (await this.#extensions('participantsOf')[0]?.(...args)) ?? null,
    hasOpenRuns: async (...args) => {
      for (const extension of this.#extensions('hasOpenRuns')) if (await extension(...args)) return true;
      return false;
    },
    mayUseWorktree: async (...args) => {
      for (const extension of this.#extensions('mayUseWorktree')) if (await extension(...args)) return true;
      return false;
    },
    publishTask: async (...args) => {
      for (const extension of this.#extensions('publishTask')) await extension(...args);
    },
    actorHelp: () => this.#extensions('actorHelp').flatMap((extension) => extension()),
    pendingMail: async (...args) => (await this.#extensions('pendingMail')[0]?.(...args)) ?? null,
    unacknowledgedMail: async (...args) =>
      (await this.#extensions('unacknowledgedMail')[0]?.(...args)) ?? new Map(),
  };

  readonly remote_nodes: RemoteNodes = {
    ids: () => this.#remoteNodes()?.ids() ?? [],
    find: (id: string) => this.#remoteNodes()?.find(id) ?? null,
    isRegistered: async (reader: Reader, id: string) =>
      (await this.#remoteNodes()?.isRegistered(reader, id)) ?? false,
    ingest: (id: string) => this.#remoteNodes()?.ingest(id) ?? null,
  };

  #remoteNodes(): RemoteNodes | undefined {
    return this.#features.find(({ remote_nodes }) => remote_nodes)?.remote_nodes;
  }

  #merge<S extends Slot>(slot: S): NonNullable<Feature[S]> {
    return Object.assign({}, ...this.#features.map((feature) => feature[slot]));
  }

  #hooks<K extends keyof SessionHooks>(name: K): SessionHooks[K][] {
    return this.#features.flatMap(({ session }) => session?.[name] ?? []);
  }

  #extensions<K extends keyof Extensions>(name: K): Extensions[K][] {
    return this.#features.flatMap(({ extensions }) => extensions?.[name] ?? []);
  }
}
