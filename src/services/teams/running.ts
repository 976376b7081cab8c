/** The parts that carry runs out, wired together: what the plane needs of them to drive agents of teams. */
import type { FactHandlers } from '../../flow/facts.ts';
import type { IntentHandlers } from '../../flow/outbox.ts';
import type { TimerHandlers } from '../../timers/timers.ts';
import type { AgentsContext, AgentsOptions } from '../agents/context.ts';
import type { Lifecycle } from '../agents/lifecycle.ts';
import { Attempts } from './attempts.ts';
import { Execution } from './execution.ts';
import { Outcomes } from './outcomes.ts';
import { type PendingMail, Preparing } from './preparing.ts';
import { Progress } from './progress.ts';

export interface Running {
  progress: Progress;
  ended: AgentsOptions['ended'];
  facts: FactHandlers;
  timers: Pick<TimerHandlers, 'step_timeout'>;
  intents: Pick<IntentHandlers, 'prepare' | 'collect' | 'hear'>;
}

export function openRunning(context: AgentsContext, lifecycle: Lifecycle, mail: PendingMail): Running {
  const { clock, feed, facts } = context.options;
  const progress = new Progress({
    clock,
    feed,
    facts,
    execute: (tx, run, effects) => execution.execute(tx, run, effects),
  });
  const attempts = new Attempts(context, lifecycle, progress);
  const execution = new Execution(context, attempts);
  const preparing = new Preparing(context, lifecycle, attempts, mail);
  const outcomes = new Outcomes(context, attempts, progress);
  return {
    progress,
    ended: (tx, session_id, exit) => outcomes.sessionEnded(tx, session_id, exit),
    facts: outcomes.facts(),
    timers: execution.timers(),
    intents: { ...outcomes.intents(), prepare: (intent) => preparing.prepare(intent) },
  };
}
