/** Runs of teams: their steps, the assignments of agents, and the events of a run. */
import type { AgentsFeature } from '../agents/index.ts';
import type { Core, Feature } from '../feature.ts';
import type { Tokens } from '../tokens/service.ts';
import { requireRun } from './access.ts';
import { RunDeleter } from './deletion.ts';
import { openRunEngine } from './engine.ts';
import { runHandlers } from './http.ts';
import { participantsOfAgent } from './participants.ts';
import type { RunPublisher } from './publisher.ts';
import { hasOpenRuns } from './queries/runs.ts';
import { RunEvents } from './run-events.ts';
import type { Scheduler } from './scheduler.ts';
import { Runs } from './service.ts';
import { getStepContext } from './step-context.ts';
import { mayUseWorktree } from './worktree-rights.ts';

export interface RunsFeature extends Feature {
  runs: Runs;
  deleter: RunDeleter;
  scheduler: Scheduler;
  publisher: RunPublisher;
}

export function openRuns(
  core: Core,
  { agents, tokens }: { agents: AgentsFeature; tokens: Tokens },
): RunsFeature {
  const { store, clock, streams } = core;
  const engine = openRunEngine(agents.core, agents.lifecycle);
  const { scheduler, publisher } = engine;
  const deleting = new Set<string>();
  const runs = new Runs({ ...core, scheduler, deleting });
  const { lifecycle } = agents;
  const deleter = new RunDeleter({
    core: agents.core,
    agents: agents.agents,
    lifecycle,
    publisher,
    deleting,
  });
  const events = new RunEvents({ store, clock });
  return {
    name: 'runs',
    ...{ runs, deleter, scheduler, publisher },
    routes: runHandlers({ runs, deleter, events, tokens, streams }),
    resources: {
      run_id: (caller, action, { run_id, team_id }) =>
        store.read((reader) => requireRun(reader, caller, action, run_id!, team_id)),
    },
    sweep: () => deleter.sweep(core.settings.get('retention.run_agents_days')),
    facts: { runs: engine.facts },
    timers: engine.timers,
    intents: engine.intents,
    session: { environment: getStepContext, onExit: engine.onSessionExit },
    extensions: { participantsOf: participantsOfAgent, hasOpenRuns, mayUseWorktree },
  };
}
