/**
 * Entry of the command line. Commands only parse, call the API and print. They reach the outside world only through
 * the context and return an exit code instead of ending the process.
 */
import type { Command } from 'commander';
import type { Context } from './context.ts';
import { addErrorHelp } from './help.ts';
import { createProgram, runProgram } from './program.ts';

export interface CommandGroup {
  /** The names and aliases of the commands that it adds to `svc`. */
  names: readonly string[];
  /** Under which `svc --help` lists them. */
  heading: string;
  load(): Promise<(svc: Command, context: Context) => unknown>;
}

/** Of `svc --help`, in the order of the groups below. */
const headings = {
  machine: 'The service on this machine:',
  account: 'Your account:',
  agents: 'Agents:',
  teams: 'Teams:',
  installation: 'The installation:',
  programs: 'For agents and tests:',
  help: 'Help:',
};

/** In the order of `svc --help`. */
export const groups: readonly CommandGroup[] = [
  {
    heading: headings.machine,
    names: ['serve', 'init', 'stop', 'doctor', 'backup', 'restore', 'open'],
    load: async () => (await import('./local-commands.ts')).addLocalCommands,
  },
  {
    heading: headings.machine,
    names: ['move-to-postgres', 'move-to-embedded'],
    load: async () => (await import('./move-commands.ts')).addMoves,
  },
  {
    heading: headings.account,
    names: ['login', 'logout', 'whoami', 'join', 'join-link'],
    load: async () => (await import('../features/accounts/commands/login.ts')).addLogin,
  },
  {
    heading: headings.agents,
    names: ['agents'],
    load: async () => (await import('../features/agents/commands/agents.ts')).addAgents,
  },
  {
    heading: headings.agents,
    names: ['logs'],
    load: async () => (await import('../features/agents/commands/logs.ts')).addLogs,
  },
  {
    heading: headings.agents,
    names: ['prompt'],
    load: async () => (await import('../features/agents/commands/agent-prompt.ts')).addPrompt,
  },
  {
    heading: headings.agents,
    names: ['worktrees'],
    load: async () => (await import('../features/worktrees/commands/worktrees.ts')).addWorktrees,
  },
  {
    heading: headings.agents,
    names: ['reviews'],
    load: async () => (await import('../features/reviews/commands/reviews.ts')).addReviews,
  },
  {
    heading: headings.agents,
    names: ['elicitations'],
    load: async () => (await import('../features/elicitations/commands/elicitations.ts')).addElicitations,
  },
  {
    heading: headings.teams,
    names: ['teams'],
    load: async () => (await import('../features/teams/commands/teams.ts')).addTeams,
  },
  {
    heading: headings.teams,
    names: ['runs'],
    load: async () => {
      const { addRuns } = await import('../features/runs/commands/runs.ts');
      const { addRunMail } = await import('../features/mailbox/commands/mail.ts');
      const { addRunTriggers } = await import('../features/mailbox/commands/triggers.ts');
      return (svc, context) => addRuns(svc, context, [addRunMail, addRunTriggers]);
    },
  },
  {
    heading: headings.teams,
    names: ['steps'],
    load: async () => (await import('../features/runs/commands/steps.ts')).addSteps,
  },
  {
    heading: headings.teams,
    names: ['tasks'],
    load: async () => (await import('../features/tasks/commands/tasks.ts')).addTasks,
  },
  {
    heading: headings.teams,
    names: ['mail'],
    load: async () => (await import('../features/mailbox/commands/mail.ts')).addMail,
  },
  {
    heading: headings.teams,
    names: ['triggers'],
    load: async () => (await import('../features/mailbox/commands/triggers.ts')).addTriggers,
  },
  {
    heading: headings.agents,
    names: ['presets'],
    load: async () => (await import('../features/presets/commands/presets.ts')).addPresets,
  },
  {
    heading: headings.installation,
    names: ['nodes'],
    load: async () => (await import('../features/nodes/commands/nodes.ts')).addNodes,
  },
  {
    heading: headings.installation,
    names: ['cluster'],
    load: async () => (await import('../features/cluster/commands/cluster.ts')).addCluster,
  },
  {
    heading: headings.installation,
    names: ['users'],
    load: async () => (await import('../features/accounts/commands/users.ts')).addUsers,
  },
  {
    heading: headings.account,
    names: ['tokens'],
    load: async () => (await import('../features/tokens/commands/tokens.ts')).addTokens,
  },
  {
    heading: headings.installation,
    names: ['audit'],
    load: async () => (await import('../features/audit/commands/audit.ts')).addAudit,
  },
  {
    heading: headings.programs,
    names: ['actor'],
    load: async () => {
      const { addActor } = await import('../features/actors/commands/actor.ts');
      const { addActorTriggers } = await import('../features/mailbox/commands/actor-triggers.ts');
      const { addActorMail } = await import('../features/mailbox/commands/actor-mail.ts');
      return (svc, context) => addActor(svc, context, [addActorTriggers, addActorMail]);
    },
  },
  {
    heading: headings.programs,
    names: ['mcp'],
    load: async () => (await import('../features/actors/commands/mcp.ts')).addMcp,
  },
  {
    heading: headings.installation,
    names: ['config'],
    load: async () => (await import('../features/settings/commands/config.ts')).addConfig,
  },
  {
    heading: headings.programs,
    names: ['demo-agent'],
    load: async () => {
      const { addDemoAgent } = await import('./demo-agent.ts');
      return (svc, { io }) => addDemoAgent(svc, io);
    },
  },
  {
    heading: headings.help,
    names: ['completion', '__complete'],
    load: async () => (await import('./completion.ts')).addCompletion,
  },
  { heading: headings.help, names: ['help'], load: async () => (await import('./help.ts')).addHelp },
];

/** The program with these groups of commands. */
export async function program(context: Context, chosen = groups): Promise<Command> {
  const svc = createProgram(context.io).version(context.local.version, '-V, --version');
  const loaded = await Promise.all(chosen.map(async ({ heading, load }) => ({ heading, add: await load() })));
  for (const { heading, add } of loaded) add(svc.commandsGroup(heading), context);
  addErrorHelp(svc);
  return svc;
}

/** Runs one command and returns its exit code. `argv`: without node and script. */
export async function runCli(argv: readonly string[], context: Context): Promise<number> {
  const ordered = commandFirst(argv);
  const [name] = ordered;
  // Otherwise, the default command would reject the options after an unknown name before it rejects the name.
  const words = name === undefined || isKnown(name) ? ordered : [name];
  return runProgram(await program(context, groupsFor(ordered)), words, context.io);
}

function isKnown(name: string): boolean {
  return name.startsWith('-') || groups.some(({ names }) => names.includes(name));
}

/** Options of nearly all commands, which may also come before the command; with the number of their values. */
const common_options: Record<string, number> = { '--url': 1, '--config': 1, '--data-dir': 1, '--json': 0 };

/** Moves common options from the beginning to the end, before `--`: commands declare them. */
function commandFirst(argv: readonly string[]): readonly string[] {
  let at = 0;
  while (at < argv.length) {
    const [name = '', ...value] = argv[at]!.split('=');
    const values = common_options[name];
    if (values === undefined) break;
    at += value.length > 0 ? 1 : 1 + values;
  }
  // Without a command, they belong to `serve`.
  if (at === 0 || at >= argv.length || argv[at]!.startsWith('-')) return argv;
  const end = argv.indexOf('--', at);
  const rest = end === -1 ? argv.length : end;
  return [...argv.slice(at, rest), ...argv.slice(0, at), ...argv.slice(rest)];
}

/** What a command line needs: loading all commands takes three times as long as loading one group. */
function groupsFor([name = 'serve', ...rest]: readonly string[]): readonly CommandGroup[] {
  if (name === '-V' || name === '--version') return [];
  // Completion, the list of commands and unknown commands need all groups.
  const named = name === 'help' ? rest[0] : name;
  const chosen = groups.filter(
    ({ names }) => named !== undefined && names.includes(named) && !names.includes('completion'),
  );
  if (chosen.length === 0) return groups;
  return name === 'help' ? [...chosen, ...groups.filter(({ names }) => names.includes('help'))] : chosen;
}
