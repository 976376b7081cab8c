/** The reference of all commands, from the program that parses them. */
import { PassThrough } from 'node:stream';
import type { Command } from 'commander';
import type { Context, LocalOperations } from '../../src/cli/context.ts';
import { exitCodes } from '../../src/cli/failure.ts';
import { program } from '../../src/cli/main.ts';
import { page, table } from './page.ts';

const HELP_COLUMNS = 110;

const exitMeanings: Record<keyof typeof exitCodes, string> = {
  ok: 'success',
  failed: 'the command failed',
  usage: 'invalid arguments',
  bad_end: 'what the command waited for failed or was cancelled',
  unauthenticated: 'you are not signed in, or only root may do this',
  unreachable: "the agent's node does not answer",
  timeout: 'timed out',
  interrupted: 'interrupted by Ctrl-C',
};

const variables = [
  ['`SVC_URL`', 'URL of the plane; default: the plane of the last `svc login`, else the one on this machine'],
  ['`SVC_TOKEN`', 'token to use instead of the one that `svc login` stored, for example in scripts and CI'],
  ['`SVC_CONFIG`', 'configuration file'],
  ['`SVC_DATA_DIR`', 'data directory; default: `$XDG_DATA_HOME/svc`'],
  [
    '`XDG_CONFIG_HOME`, `XDG_DATA_HOME`',
    'base folders of the configuration, stored tokens and the data directory',
  ],
  ['`SVC_ACTOR_ID`, `SVC_RUN_ID`', 'actor and run of `svc actor`; set for agents of runs'],
  ['`SVC_STEP_KEY`', 'step of `svc actor`; set for steps of agents without ACP'],
  ['`SVC_SESSION_ID`', 'session for which `svc actor` calls; set for every agent'],
  [
    '`SVC_ACTOR_TOKEN_FILE`',
    'token of `svc actor`; set for every agent if `internal_grpc.enabled` is true ([all variables of agents](actors.md))',
  ],
  ['`NO_COLOR`, `TERM=dumb`', 'no colors'],
];

export async function cliPage(): Promise<string> {
  const svc = await program(context());
  const groups = visible(svc).flatMap((command) => [
    `## svc ${command.name()}`,
    ...leaves(command).map((leaf) => `\`\`\`text\n${helpOf(leaf)}\n\`\`\``),
  ]);
  const codes = Object.entries(exitCodes).map(([name, value]) => [
    String(value),
    exitMeanings[name as keyof typeof exitCodes],
  ]);
  return page(
    'Command line',
    'This page shows the help of every `svc` command.',
    ['src/cli/main.ts'],
    [
      'Data goes to stdout and messages to stderr. `--json` prints JSON, one object per line with `-f` and with `ls -w`.',
      '## Exit codes',
      table(['Code', 'Meaning'], codes),
      '## Environment variables',
      table(['Variable', 'Meaning'], variables),
      'Flags win over variables. Every configuration key also has a variable ([Configuration](configuration.md)).',
      '## Shell completion',
      'Commands, options and names can be completed with the Tab key. Add this to the file that your shell reads when it starts, after `svc` is in `PATH`:',
      '```sh\neval "$(svc completion bash)"          # in ~/.bashrc\neval "$(svc completion zsh)"           # in ~/.zshrc, after compinit\nsvc completion fish | source           # in ~/.config/fish/config.fish\n```',
      ...groups,
    ],
  );
}

/** Commands without subcommands, depth first. */
function leaves(command: Command): Command[] {
  const below = visible(command);
  return below.length === 0 ? [command] : below.flatMap(leaves);
}

function visible(command: Command): Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== 'help');
}

/** What `--help` prints. */
function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => HELP_COLUMNS });
  command.outputHelp();
  return text.trim();
}

/** Nothing is run, so the program needs no environment. */
function context(): Context {
  const stream = new PassThrough();
  const io = { env: {}, cwd: '/', home: '/', stdin: stream, stdout: stream, stderr: stream };
  return { io: { ...io, signal: new AbortController().signal }, local: { version: '' } as LocalOperations };
}
