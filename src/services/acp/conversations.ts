/**
 * Conversations with agents that speak ACP, as the rest of the plane drives them: frames that were read, sessions that
 * began or ended, what is told when an agent stays silent, and what is said to it before it is stopped.
 */
import { failpoint } from '../../base/failpoint.ts';
import type { FactHandlers } from '../../flow/facts.ts';
import type { FrameBatch } from '../../ingest/ingest.ts';
import { loadAcpState } from '../../store/acp.ts';
import { findAgent, findSession, moveSpool, spoolsOf, updateAgent } from '../../store/agents.ts';
import { sentPrompts, updatePrompt } from '../../store/prompts.ts';
import type { Tx } from '../../store/store.ts';
import type { TimerHandlers } from '../../timers/timers.ts';
import type { AgentsContext } from '../agents/context.ts';
import { awaitAnswer, type DriverOptions, endTurn, introduce, react, waits } from './driver.ts';
import { Exchange } from './exchange.ts';
import { isApplying } from './permission-mode.ts';
import { abandonReviews } from './review-rows.ts';

const UNCONFIRMED =
  'the agent has not confirmed the mode in which it asks before it acts: it gets no prompt until it does';

export class Conversations {
  readonly #context: AgentsContext;
  readonly #options: DriverOptions;

  constructor(context: AgentsContext, options: DriverOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Commits what was read of an agent's stdout with everything that follows from it. */
  async frames(batch: FrameBatch): Promise<void> {
    await this.#context.options.store.write((tx) =>
      Exchange.run(this.#context, tx, batch.session_id, (exchange) => {
        const { num } = exchange.session;
        const before = spoolsOf(tx, num).stdout.output ?? 0;
        moveSpool(tx, num, 'stdout', { ...batch, output: before + outputBytes(batch) });
        this.#take(exchange, batch, before);
      }),
    );
    failpoint('acp_frames_committed');
  }

  /** Sessions that began and ended. */
  facts(): FactHandlers {
    return {
      session_started: (tx, { payload }) => {
        Exchange.run(this.#context, tx, payload.session_id, introduce);
      },
      session_ended: (tx, { payload }) => this.#ended(tx, payload.agent_id, payload.session_id),
    };
  }

  timers(): Pick<TimerHandlers, 'acp_silent' | 'turn_cancel'> {
    return {
      acp_silent: (tx, { ref }) => {
        Exchange.run(this.#context, tx, ref, (exchange) => {
          const applying = isApplying(exchange);
          if (exchange.state.phase !== 'initializing' && !applying) return;
          // Nothing can be heard of a node that is out of reach.
          if (exchange.agent.stale_since !== null) return awaitAnswer(exchange);
          if (applying) return waits(exchange, 'permission_mode_unconfirmed', UNCONFIRMED);
          waits(exchange, 'acp_silent', 'the agent has not introduced itself: it may not speak ACP');
        });
      },
      turn_cancel: (tx, { ref, payload }) => {
        Exchange.run(this.#context, tx, ref, (exchange) => {
          if (exchange.state.turn?.prompt_id !== payload.prompt_id) return;
          exchange.error('cancel_ignored', 'the turn was cancelled, and the agent goes on with it', payload);
        });
      },
    };
  }

  /** Before an agent is stopped: nobody is left waiting for an answer, which some agents do through any signal. */
  farewell(tx: Tx, session_id: string): void {
    Exchange.run(this.#context, tx, session_id, (exchange) => endTurn(exchange, null));
  }

  /** `offset`: how much output there was before. */
  #take(exchange: Exchange, { pieces, spilling }: FrameBatch, offset: number): void {
    for (const piece of pieces) {
      if (piece.kind === 'output') {
        const { bytes, partial } = piece;
        exchange.output({ offset, bytes, partial });
        offset += bytes.length;
      } else if (piece.kind === 'too_large') {
        exchange.error(
          'frame_too_large',
          'a line of the agent is too long for a frame: it is shown as output',
        );
      } else {
        for (const happened of exchange.receive(piece)) react(exchange, happened, this.#options);
      }
    }
    exchange.spilling(spilling);
  }

  #ended(tx: Tx, agent_id: string, session_id: string): void {
    const session = findSession(tx, session_id);
    const agent = findAgent(tx, agent_id);
    if (!session || !agent || session.protocol !== 'acp') return;
    const { timers } = this.#context.options;
    timers.clear(tx, 'acp_silent', session_id);
    timers.clear(tx, 'turn_cancel', session_id);
    const unanswered = loadAcpState(tx, session.num).asked.map(({ id }) => id);
    tx.afterCommit(() => this.#options.unanswered(unanswered));
    abandonReviews(this.#context, tx, agent.num, session.num);
    for (const prompt of sentPrompts(tx, agent.num, session.num)) {
      updatePrompt(tx, prompt.num, { state: 'lost', ended_at: this.#context.now() });
      const told = 'the agent ended in the middle of a turn: what came of the prompt is not known';
      this.#context.error(tx, agent_id, session_id, 'turn_lost', told, { prompt_id: prompt.id });
    }
    if (agent.session_id === session_id) updateAgent(tx, agent.num, { activity: null });
    this.#context.publish(tx, agent_id);
  }
}

function outputBytes({ pieces }: FrameBatch): number {
  return pieces.reduce((sum, piece) => sum + (piece.kind === 'output' ? piece.bytes.length : 0), 0);
}
