/**
 * Entry of the command line. Commands only parse, call the API and print. They reach the outside world only through
 * the context and return an exit code instead of ending the process.
 */
import type { Command } from 'commander';
import { addLogin } from '../features/accounts/commands/login.ts';
import { addUsers } from '../features/accounts/commands/users.ts';
import { addActor } from '../features/actors/commands/actor.ts';
import { addMcp } from '../features/actors/commands/mcp.ts';
import { addPrompt } from '../features/agents/commands/agent-talk.ts';
import { addAgents } from '../features/agents/commands/agents.ts';
import { addLogs } from '../features/agents/commands/logs.ts';
import { addAudit } from '../features/audit/commands/audit.ts';
import { addElicitations } from '../features/elicitations/commands/elicitations.ts';
import { addActorMail } from '../features/mailbox/commands/actor-mail.ts';
import { addActorTriggers } from '../features/mailbox/commands/actor-triggers.ts';
import { addMail, addRunMail } from '../features/mailbox/commands/mail.ts';
import { addTriggers } from '../features/mailbox/commands/triggers.ts';
import { addNodes } from '../features/nodes/commands/nodes.ts';
import { addPresets } from '../features/presets/commands/presets.ts';
import { addReviews } from '../features/reviews/commands/reviews.ts';
import { addRuns } from '../features/runs/commands/runs.ts';
import { addSteps } from '../features/runs/commands/steps.ts';
import { addConfig } from '../features/settings/commands/config.ts';
import { addTasks } from '../features/tasks/commands/tasks.ts';
import { addTeams } from '../features/teams/commands/teams.ts';
import { addTokens } from '../features/tokens/commands/tokens.ts';
import { addCompletion } from './completion.ts';
import type { Context } from './context.ts';
import { addDemoAgent } from './demo-agent.ts';
import { addMachine } from './machine.ts';
import { createProgram, runProgram } from './program.ts';

export function program(context: Context): Command {
  const { io, local } = context;
  const svc = createProgram(io).version(local.version, '-V, --version');
  addMachine(svc, context);
  addLogin(svc, context);
  addAgents(svc, context);
  addLogs(svc, context);
  addPrompt(svc, context);
  addReviews(svc, context);
  addElicitations(svc, context);
  addTeams(svc, context);
  addRuns(svc, context, [addRunMail]);
  addSteps(svc, context);
  addTasks(svc, context);
  addMail(svc, context);
  addTriggers(svc, context);
  addPresets(svc, context);
  addNodes(svc, context);
  addUsers(svc, context);
  addTokens(svc, context);
  addAudit(svc, context);
  addActor(svc, context, [addActorTriggers, addActorMail]);
  addMcp(svc, context);
  addConfig(svc, context);
  addDemoAgent(svc, io);
  addCompletion(svc, context);
  return svc;
}

/** Runs one command and returns its exit code. `argv`: without node and script. */
export function runCli(argv: readonly string[], context: Context): Promise<number> {
  return runProgram(program(context), argv, context.io);
}
