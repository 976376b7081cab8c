/**
 * `svc completion SHELL`: prints a small script that asks `svc __complete` for candidates. So commands, options and
 * names always match the installed program and the plane.
 */
import { Command, type Option } from 'commander';
import { limits as sharedLimits } from '../base/limits.ts';
import { isRunOver } from '../features/runs/rules/run.ts';
import { type Api, type ApiOptions, connect } from './api.ts';
import type { Context } from './context.ts';
import { usage } from './failure.ts';
import { limits } from './limits.ts';
import { remote } from './options.ts';
import { print } from './output.ts';

const scripts: Record<string, string> = {
  bash: `_svc() {
  # Bash also splits words at ":", "=" and "@". svc gets whole words, and bash what follows its last split.
  local IFS=$'\\n' rest=\${COMP_LINE:0:COMP_POINT} words=() word= part
  for part in "\${COMP_WORDS[@]:0:COMP_CWORD}" ""; do
    if [[ $rest == [[:space:]]* ]]; then
      words+=("$word")
      word=
      rest=\${rest#"\${rest%%[![:space:]]*}"}
    fi
    word+=$part
    rest=\${rest#"$part"}
  done
  word+=$rest
  COMPREPLY=($(svc __complete -- "\${words[@]:1}" "$word" 2>/dev/null))
  COMPREPLY=("\${COMPREPLY[@]#"\${word%"$2"}"}")
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
  // The shell has not expanded them yet.
  const before = words.slice(0, -1).map((word) => word.replace(/^~(?=\/)/, context.io.home));
  const { command, places, options, incomplete } = parse(program, before);
  let found: readonly string[] = [];
  if (incomplete) {
    found = incomplete.argChoices ?? [];
  } else if (last.startsWith('-')) {
    found = optionsOf(command)
      .filter(({ hidden }) => !hidden)
      .flatMap(({ long }) => long ?? []);
  } else if (command.commands.length > 0 && places === 0) {
    found = command
      .createHelp()
      .visibleCommands(command)
      .map((sub) => sub.name());
  } else {
    const argument = command.registeredArguments[Math.min(places, command.registeredArguments.length - 1)];
    const lookUp = named[argument?.name() ?? ''];
    if (lookUp) found = await callOrEmpty(context, options, (api) => lookUp(api, command.name()));
  }
  return found.filter((text) => text.startsWith(last)).sort();
}

interface Parsed {
  command: Command;
  /** The number of arguments of the command. */
  places: number;
  options: ApiOptions;
  /** The option whose value comes next. */
  incomplete: Option | undefined;
}

function parse(program: Command, words: readonly string[]): Parsed {
  let command = program;
  let places = 0;
  const values: Record<string, string> = {};
  let incomplete: Option | undefined;
  for (const word of words) {
    if (incomplete) {
      values[incomplete.attributeName()] = word;
      incomplete = undefined;
    } else if (/^-./.test(word)) {
      const [flag = '', ...value] = word.split('=');
      const option = optionsOf(command).find(({ short, long }) => flag === short || flag === long);
      if (!option?.required) continue;
      if (value.length > 0) values[option.attributeName()] = value.join('=');
      else incomplete = option;
    } else {
      const next = command.commands.find((sub) => sub.name() === word || sub.aliases().includes(word));
      if (next && places === 0) command = next;
      else places += 1;
    }
  }
  const { url, config, dataDir } = values;
  return { command, places, options: { url, config, dataDir }, incomplete };
}

const common_options = remote(new Command(), 'any', '').options;

/** The options of a command. Common ones may also come before all commands. */
function optionsOf(command: Command): readonly Option[] {
  return command.parent === null ? [...command.options, ...common_options] : command.options;
}

/** Candidates for arguments that name something on the plane. */
const named: Record<string, (api: Api, command: string) => Promise<string[]>> = {
  agent: async (api) => plainNames(await api.all('listAgents', {})),
  review: async (api) => (await api.all('listReviews', { query: { status: 'pending' } })).map(({ id }) => id),
  elicitation: async (api) =>
    (await api.all('listElicitations', { query: { status: 'pending' } })).map(({ id }) => id),
  team: async (api) => plainNames(await api.all('listTeams', {})),
  run: runsFor,
  node: async (api) => (await api.all('listAgentNodes', {})).map(({ id }) => id),
};

/** Returns nothing if the plane does not answer in time. */
async function callOrEmpty(
  context: Context,
  options: ApiOptions,
  question: (api: Api) => Promise<string[]>,
): Promise<string[]> {
  try {
    const signal = AbortSignal.any([context.io.signal, AbortSignal.timeout(limits.completion_wait_ms)]);
    return await question(await connect({ ...context, io: { ...context.io, signal } }, options));
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

/** Names if they are unique and need no quoting, ids otherwise. */
function plainNames(listed: readonly { id: string; name: string }[]): string[] {
  const uses = new Map<string, number>();
  for (const { name } of listed) uses.set(name, (uses.get(name) ?? 0) + 1);
  return listed.map(({ id, name }) => (uses.get(name) === 1 && /^[\w.@:+-]+$/.test(name) ? name : id));
}
