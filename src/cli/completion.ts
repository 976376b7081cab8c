/**
 * `svc completion SHELL`: prints a small script that asks `svc __complete` for candidates. So commands, options and
 * names always match the installed program and the plane.
 */
import type { Command } from 'commander';
import { limits as sharedLimits } from '../base/limits.ts';
import { isRunOver } from '../features/runs/rules/run.ts';
import { type Api, connect } from './api.ts';
import type { Context } from './context.ts';
import { usage } from './failure.ts';
import { limits } from './limits.ts';
import { print } from './output.ts';

const scripts: Record<string, string> = {
  bash: `_svc() {
  local IFS=$'\\n'
  COMPREPLY=($(svc __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  if [ "\${#COMPREPLY[@]}" -eq 0 ]; then compopt -o default; fi
}
complete -F _svc svc
`,
  zsh: `#compdef svc
_svc() {
  local -a found
  found=("\${(@f)$(svc __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
compdef _svc svc
`,
  fish: `function __svc_complete
    set -l words (commandline -opc) (commandline -ct)
    svc __complete -- $words[2..-1] 2>/dev/null
end
complete -c svc -a '(__svc_complete)'
`,
};

export function addCompletion(program: Command, context: Context): void {
  program
    .command('completion <shell>')
    .description('print the completion script for bash, zsh or fish')
    .action(async (shell: string) => {
      if (!Object.hasOwn(scripts, shell)) throw usage('the shell must be bash, zsh or fish');
      await print(context.io, scripts[shell]!);
    });

  program.command('__complete [words...]', { hidden: true }).action(async (words: string[]) => {
    const found = await candidates(program, context, words);
    await print(context.io, found.map((text) => `${text}\n`).join(''));
  });
}

/** Candidates for the last word. */
async function candidates(program: Command, context: Context, words: string[]): Promise<string[]> {
  const last = words.at(-1) ?? '';
  let command = program;
  let places = 0;
  for (const word of words.slice(0, -1)) {
    if (word.startsWith('-')) continue;
    const next = command.commands.find((sub) => sub.name() === word || sub.aliases().includes(word));
    if (next && places === 0) command = next;
    else places += 1;
  }
  let found: string[];
  if (last.startsWith('-')) {
    found = command.options.filter(({ hidden }) => !hidden).flatMap(({ long }) => long ?? []);
  } else if (command.commands.length > 0 && places === 0) {
    found = command
      .createHelp()
      .visibleCommands(command)
      .map((sub) => sub.name());
  } else {
    const argument = command.registeredArguments[Math.min(places, command.registeredArguments.length - 1)];
    found = await (named[argument?.name() ?? '']?.(context, command.name()) ?? []);
  }
  return found.filter((text) => text.startsWith(last)).sort();
}

/** Candidates for arguments that name something on the plane. */
const named: Record<string, (context: Context, command: string) => Promise<string[]>> = {
  agent: (context) => callOrEmpty(context, agentNames),
  review: (context) =>
    callOrEmpty(context, async (api) =>
      (await api.all('listReviews', { query: { status: 'pending' } })).map(({ id }) => id),
    ),
  elicitation: (context) =>
    callOrEmpty(context, async (api) =>
      (await api.all('listElicitations', { query: { status: 'pending' } })).map(({ id }) => id),
    ),
  team: (context) => callOrEmpty(context, async (api) => plainNames(await api.all('listTeams', {}))),
  run: (context, command) => callOrEmpty(context, (api) => runsFor(api, command)),
  node: (context) =>
    callOrEmpty(context, async (api) => (await api.all('listAgentNodes', {})).map(({ id }) => id)),
};

/** Returns nothing if the plane does not answer in time. */
async function callOrEmpty(context: Context, question: (api: Api) => Promise<string[]>): Promise<string[]> {
  try {
    const signal = AbortSignal.any([context.io.signal, AbortSignal.timeout(limits.completion_wait_ms)]);
    return await question(await connect({ ...context, io: { ...context.io, signal } }, {}));
  } catch {
    return [];
  }
}

/** Commands for runs that have not ended, and commands for those that have. All others take both. */
const for_open = ['watch', 'cancel', 'complete', 'fail', 'add', 'start', 'input-required'];
const for_ended = ['delete', 'restart'];

/** The runs of the newest teams that the command may be for. */
async function runsFor(api: Api, command: string): Promise<string[]> {
  const teams = (await api.all('listTeams', {})).slice(0, limits.completion_teams_max);
  const newest = await Promise.all(
    teams.map(async ({ id }) => {
      const query = { limit: sharedLimits.cli_run_page_items };
      const page = await api.call('listRuns', { params: { team_id: id }, query });
      return Array.isArray(page) ? page : page.items;
    }),
  );
  const isFor = (is_over: boolean) => !(is_over ? for_open : for_ended).includes(command);
  return newest.flat().flatMap((run) => (isFor(isRunOver(run)) ? run.id : []));
}

async function agentNames(api: Api): Promise<string[]> {
  return plainNames(await api.all('listAgents', {}));
}

/** Names if they are unique and need no quoting, ids otherwise. */
function plainNames(listed: readonly { id: string; name: string }[]): string[] {
  const uses = new Map<string, number>();
  for (const { name } of listed) uses.set(name, (uses.get(name) ?? 0) + 1);
  return listed.map(({ id, name }) => (uses.get(name) === 1 && /^[\w.@:+-]+$/.test(name) ? name : id));
}
