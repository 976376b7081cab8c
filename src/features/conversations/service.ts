/**
 * Conversations with ACP agents, as the rest of the plane uses them: frames that were read, sessions that started or
 * ended, silent agents, and the messages before an agent is stopped.
 */
import { failpoint } from '../../base/failpoint.ts';
import type { FrameBatch } from '../../events/ingest/frame-batch.ts';
import { limits as eventLimits } from '../../events/limits.ts';
import { advanceSpool } from '../../store/event-rows/spools.ts';
import type { Tx } from '../../store/store.ts';
import type { FactHandlers } from '../../work/facts.ts';
import type { TimerHandlers } from '../../work/timers.ts';
import { AcpTransaction } from '../agents/acp-transaction.ts';
import type { AgentCore } from '../agents/core.ts';
import { loadAcpState } from '../agents/queries/acp-state.ts';
import { findAgent, findSession, updateAgent } from '../agents/queries/agents.ts';
import { hasPendingElicitation } from '../elicitations/queries.ts';
import { elicitationRequests } from '../elicitations/rows.ts';
import { reviewRequests } from '../reviews/rows.ts';
import {
  type DriverOptions,
  endTurn,
  initializeAgent,
  react,
  reportBlocked,
  setSilenceTimer,
} from './driver.ts';
import { isApplying } from './permission-mode.ts';
import { sentPrompts, updatePrompt } from './queries.ts';

const UNCONFIRMED =
  'the agent has not confirmed the mode in which it asks before it acts: it gets no prompt until it does';

export class Conversations {
  readonly #core: AgentCore;
  readonly #options: DriverOptions;
  /** The session and the error of the last message that could not be read. */
  #unreadable = '';

  constructor(core: AgentCore, options: DriverOptions) {
    this.#core = core;
    this.#options = options;
  }

  /**
   * Commits output from an agent's stdout together with everything that follows from it. Returns how many pieces it has
   * committed: messages that take long to handle are left to the next transaction, so that other work comes in between.
   */
  async frames(batch: FrameBatch): Promise<number> {
    const count = await this.#core.store.write((tx) =>
      AcpTransaction.run(this.#core, tx, batch.session_id, async (transaction) => {
        const handled = await this.#processPieces(transaction, batch);
        const { spilling, ...move } = batch.after(handled);
        await advanceSpool(tx, transaction.session.num, 'stdout', move);
        transaction.spilling(spilling);
        return handled;
      }),
    );
    failpoint('acp_frames_committed');
    return count ?? batch.pieces.length;
  }

  /** Handles the facts of sessions that started and ended. */
  facts(): FactHandlers {
    return {
      session_started: async (tx, { payload }) => {
        const newest = this.#options.acp_version();
        await AcpTransaction.run(this.#core, tx, payload.session_id, (transaction) =>
          initializeAgent(transaction, newest),
        );
      },
      session_ended: (tx, { payload }) => this.#ended(tx, payload.agent_id, payload.session_id),
    };
  }

  timers(): Pick<TimerHandlers, 'acp_silent' | 'turn_cancel'> {
    return {
      acp_silent: async (tx, { ref }) => {
        await AcpTransaction.run(this.#core, tx, ref, async (transaction) => {
          const applying = isApplying(transaction);
          const { phase } = transaction.state;
          if (phase !== 'initializing' && phase !== 'opening' && !applying) return;
          // An unreachable node cannot deliver an answer.
          if (transaction.agent.stale_since !== null) return setSilenceTimer(transaction);
          // The agent asks for input before it responds, and waits for a person.
          if (await hasPendingElicitation(tx, transaction.agent.num, transaction.session.num)) {
            return setSilenceTimer(transaction);
          }
          if (applying) return reportBlocked(transaction, 'permission_mode_unconfirmed', UNCONFIRMED);
          const why =
            phase === 'opening'
              ? 'has not opened its conversation'
              : 'has not answered: it may not speak ACP';
          await reportBlocked(transaction, 'acp_silent', `the agent ${why}`);
        });
      },
      turn_cancel: async (tx, { ref, payload }) => {
        await AcpTransaction.run(this.#core, tx, ref, async (transaction) => {
          const { turn, work } = transaction.state;
          const continues = turn !== null || work.busy;
          if (!continues || (turn?.prompt_id ?? null) !== payload.prompt_id) return;
          transaction.error('cancel_ignored', 'the turn was cancelled, but the agent continues it', payload);
        });
      },
    };
  }

  /**
   * Answers the open requests of an agent that is about to be stopped with `cancelled`, because some agents ignore
   * signals while they wait.
   */
  async beforeStop(tx: Tx, session_id: string): Promise<void> {
    await AcpTransaction.run(this.#core, tx, session_id, (transaction) => endTurn(transaction, null));
  }

  /** Returns how many pieces were handled before the limits of one transaction were reached. */
  async #processPieces(transaction: AcpTransaction, { pieces, output_from }: FrameBatch): Promise<number> {
    const end_ms = performance.now() + eventLimits.acp_transaction_ms;
    let offset = output_from;
    for (const [index, piece] of pieces.entries()) {
      if (piece.kind === 'output') {
        const { bytes, partial } = piece;
        transaction.output({ offset, bytes, partial });
        offset += bytes.length;
      } else if (piece.kind === 'too_large') {
        transaction.error(
          'frame_too_large',
          'a line of the agent is too long for a frame: it is shown as output',
        );
      } else {
        for (const event of transaction.receive(piece)) {
          if (event.kind === 'unreadable') this.#logUnreadable(transaction, event.error);
          await react(transaction, event, this.#options);
        }
        const count = index + 1;
        if (count >= eventLimits.acp_transaction_messages_max || performance.now() >= end_ms) return count;
      }
    }
    return pieces.length;
  }

  /** Logs an error once, because an agent can repeat the message at any rate. */
  #logUnreadable({ tx, core, session, agent }: AcpTransaction, err: unknown): void {
    const found = `${session.id} ${err}`;
    tx.afterCommit(() => {
      if (found === this.#unreadable) return;
      this.#unreadable = found;
      core.log.error(
        { err, agent_id: agent.id, session_id: session.id },
        'cannot read a message of an agent',
      );
    });
  }

  async #ended(tx: Tx, agent_id: string, session_id: string): Promise<void> {
    const session = await findSession(tx, session_id);
    const agent = await findAgent(tx, agent_id);
    if (!session || !agent || session.protocol !== 'acp') return;
    const { timers } = this.#core;
    await timers.clear(tx, 'acp_silent', session_id);
    await timers.clear(tx, 'turn_cancel', session_id);
    const unanswered = (await loadAcpState(tx, session.num)).asked.map(({ id }) => id);
    tx.afterCommit(() => this.#options.onNoResponse(unanswered));
    await reviewRequests.abandon(this.#core, tx, agent.num, session.num);
    await elicitationRequests.abandon(this.#core, tx, agent.num, session.num);
    for (const prompt of await sentPrompts(tx, agent.num, session.num)) {
      await updatePrompt(tx, prompt.num, { state: 'lost', ended_at: this.#core.clock.now() });
      const message = 'the agent ended during a turn: the outcome of the prompt is not known';
      await this.#core.records.logError(tx, agent_id, session_id, 'turn_lost', message, {
        prompt_id: prompt.id,
      });
    }
    if (agent.session_id === session_id) updateAgent(tx, agent.num, { activity: null });
    await this.#core.records.publish(tx, agent_id);
  }
}
