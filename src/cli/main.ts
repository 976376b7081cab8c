/**
 * The command line: one file per noun, thin commands that parse, call and print. It touches the world only through the
 * context that it is given, and answers an exit code instead of ending the process.
 */
import type { Command } from 'commander';
import { addActor } from './actor.ts';
import { addPrompt } from './agent-talk.ts';
import { addAgents } from './agents.ts';
import { addAudit } from './audit.ts';
import { addCompletion } from './completion.ts';
import { addConfig } from './config.ts';
import type { Context } from './context.ts';
import { addDemoAgent } from './demo-agent.ts';
import { addLogin } from './login.ts';
import { addLogs } from './logs.ts';
import { addMachine } from './machine.ts';
import { addMail } from './mail.ts';
import { addMcp } from './mcp.ts';
import { addNodes } from './nodes.ts';
import { addPresets } from './presets.ts';
import { addReviews } from './reviews.ts';
import { bare, runProgram } from './run.ts';
import { addRuns } from './runs.ts';
import { addSteps } from './steps.ts';
import { addTasks } from './tasks.ts';
import { addTeams } from './teams.ts';
import { addTokens } from './tokens.ts';
import { addTriggers } from './triggers.ts';
import { addUsers } from './users.ts';

export function program(context: Context): Command {
  const { io, local } = context;
  const svc = bare(io).version(local.version, '-V, --version');
  addMachine(svc, context);
  addLogin(svc, context);
  addAgents(svc, context);
  addLogs(svc, context);
  addPrompt(svc, context);
  addReviews(svc, context);
  addTeams(svc, context);
  addRuns(svc, context);
  addSteps(svc, context);
  addTasks(svc, context);
  addMail(svc, context);
  addTriggers(svc, context);
  addPresets(svc, context);
  addNodes(svc, context);
  addUsers(svc, context);
  addTokens(svc, context);
  addAudit(svc, context);
  addActor(svc, context);
  addMcp(svc, context);
  addConfig(svc, context);
  addDemoAgent(svc, io);
  addCompletion(svc, context);
  return svc;
}

/** Runs one command; `argv` without node and script. */
export function runCli(argv: readonly string[], context: Context): Promise<number> {
  return runProgram(program(context), argv, context.io);
}
