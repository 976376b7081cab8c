/** Transactions in which an actor changes something in a run. */
import type { Store, Tx } from '../../store/store.ts';
import { type ActorRequestContext, actInRun, type RunParty } from './acting.ts';
import type { ActorCaller } from './rules/actor.ts';
import { type ActorAction, authorizeAction } from './rules/rights.ts';
import { assertCurrentRunAttempt } from './stale-attempts.ts';

export class ActorTransactions {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Throws like `actInRun`, and `not allowed` without the right. */
  inRun<T>(
    caller: ActorCaller,
    context: ActorRequestContext,
    action: ActorAction,
    act: (tx: Tx, acting: RunParty) => Promise<T>,
  ): Promise<T> {
    return this.#store.write(async (tx) => {
      const acting = await actInRun(tx, caller, context);
      authorizeAction(acting.role, action);
      return act(tx, acting);
    });
  }

  /** Like `inRun`. Throws `attempt <n> of the run is over` for a session of an earlier attempt of the run. */
  inCurrentAttempt<T>(
    caller: ActorCaller,
    context: ActorRequestContext,
    action: ActorAction,
    act: (tx: Tx, acting: RunParty) => Promise<T>,
  ): Promise<T> {
    return this.inRun(caller, context, action, async (tx, acting) => {
      await assertCurrentRunAttempt(tx, caller, acting.run);
      return act(tx, acting);
    });
  }
}
