/** Connects the objects that execute runs. */
import type { Tx } from '../../store/store.ts';
import type { FactHandlers } from '../../work/facts.ts';
import type { IntentHandlers } from '../../work/outbox.ts';
import type { TimerHandlers } from '../../work/timers.ts';
import type { AgentCore } from '../agents/core.ts';
import type { Lifecycle } from '../agents/lifecycle.ts';
import { findAgent } from '../agents/queries/agents.ts';
import type { SessionHooks } from '../feature.ts';
import { Assignments } from './assignments.ts';
import { Dispatcher } from './dispatcher.ts';
import { Launcher } from './launcher.ts';
import { Obstacles } from './obstacles.ts';
import { Outcomes } from './outcomes.ts';
import { RunPublisher } from './publisher.ts';
import { Scheduler } from './scheduler.ts';

export interface RunEngine {
  scheduler: Scheduler;
  publisher: RunPublisher;
  onSessionExit: SessionHooks['onExit'];
  facts: FactHandlers;
  timers: Pick<TimerHandlers, 'step_timeout'>;
  intents: Pick<IntentHandlers, 'prepare' | 'collect' | 'collect_message' | 'collect_failure'>;
}

export function openRunEngine(core: AgentCore, lifecycle: Lifecycle): RunEngine {
  const { clock, feed, facts } = core;
  const publisher = new RunPublisher({ clock, feed });
  const publishAgent = async (tx: Tx, agent_id: string) => {
    // It may have been deleted.
    if (await findAgent(tx, agent_id)) await core.records.publish(tx, agent_id);
  };
  const scheduler = new Scheduler({ clock, facts, publisher, publishAgent });
  const obstacles = new Obstacles(core, publisher);
  const assignments = new Assignments(core, { lifecycle, scheduler, obstacles });
  const dispatcher = new Dispatcher(core, assignments);
  scheduler.open((tx, run, effects) => dispatcher.execute(tx, run, effects));
  const launcher = new Launcher(core, lifecycle, assignments, obstacles);
  const outcomes = new Outcomes(core, assignments, publisher, obstacles);
  return {
    scheduler,
    publisher,
    onSessionExit: (tx, session_id, exit) => outcomes.collectOutput(tx, session_id, exit),
    facts: outcomes.facts(),
    timers: dispatcher.timers(),
    intents: { ...outcomes.intents(), prepare: (intent) => launcher.prepare(intent) },
  };
}
