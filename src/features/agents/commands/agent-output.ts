/** Input, sessions, output, search, changes and diffs of agents. */
import type { Command } from 'commander';
import { type ApiOptions, connect, findAgent } from '../../../cli/api.ts';
import type { Context, Io } from '../../../cli/context.ts';
import { failed, usage, withStartHint } from '../../../cli/failure.ts';
import { integer, remote, remoteBytes } from '../../../cli/options.ts';
import { jsonText, print, printJson, printRows, printStatus, supportsColor } from '../../../cli/output.ts';
import { openStdin } from '../../../cli/prompt.ts';
import { printable, TerminalFilter } from '../../../cli/terminal.ts';
import type { StreamName } from '../../../core/event.ts';
import { limits } from '../limits.ts';
import { checkStream } from './logs.ts';

type Options = ApiOptions & { json?: boolean };

export function addAgentOutput(agents: Command, context: Context): void {
  addInput(agents, context);
  addSessions(agents, context);
  addOutput(agents, context);
  addSearch(agents, context);
  addChanges(agents, context);
  addFiles(agents, context);
  addDiff(agents, context);
}

function addInput(agents: Command, context: Context): void {
  const { io } = context;
  remote(agents, 'input <agent> [text]', "write to an agent's stdin; without text, copy stdin")
    .option('--eof', "close the agent's stdin afterwards")
    .option('-n, --no-newline', 'do not end the text with a newline')
    .action(async (ref: string, text: string | undefined, options: Options & Input) => {
      const api = await connect(context, options);
      let agent = await findAgent(api, ref);
      const params = { agent_id: agent.id };
      const send = async (data: string, eof: boolean) => {
        const call = { params, body: { data, eof }, idempotency_key: crypto.randomUUID() };
        agent = await withStartHint(ref, api.callWithRetry('sendInput', call));
      };
      if (text !== undefined) await send(options.newline ? `${text}\n` : text, options.eof ?? false);
      else await copyStdin(io, send, options.eof ?? false);
      if (options.json) await printJson(io, agent);
    });
}

async function copyStdin(
  io: Io,
  send: (data: string, eof: boolean) => Promise<void>,
  eof: boolean,
): Promise<void> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const decode = (chunk?: Uint8Array) => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch {
      throw failed('standard input is not UTF-8 text: the rest is not sent');
    }
  };
  for await (const chunk of openStdin(io)) {
    const piece = typeof chunk === 'string' ? chunk : decode(chunk);
    for (const part of parts(piece)) await send(part, false);
  }
  decode();
  if (eof) await send('', true);
}

function addSessions(agents: Command, context: Context): void {
  const { io } = context;
  remote(agents, 'sessions <agent>', "list an agent's sessions, newest first").action(
    async (ref: string, options: Options) => {
      const api = await connect(context, options);
      const { id } = await findAgent(api, ref);
      const rows = await api.all('listSessions', { params: { agent_id: id } });
      await printRows(
        io,
        rows,
        [
          { title: '#', value: (row) => row.number },
          { title: 'ID', value: (row) => row.id },
          { title: 'STATE', value: (row) => row.state },
          { title: 'END', value: (row) => row.exit_signal ?? row.reason ?? row.exit_code },
          { title: 'STARTED', value: (row) => row.started_at },
          { title: 'ENDED', value: (row) => row.ended_at },
          { title: 'STDOUT', value: (row) => row.stdout_bytes },
          { title: 'STDERR', value: (row) => row.stderr_bytes },
        ],
        options,
      );
    },
  );
}

function addOutput(agents: Command, context: Context): void {
  const { io } = context;
  remoteBytes(agents, 'output <agent>', 'print the raw output of one session', 'svc logs --json')
    .option('--session <id>', 'the session; default: the latest')
    .option('--stream <name>', 'only stdout, or only stderr')
    .option('--tail <bytes>', 'only the last bytes', integer)
    .option('--raw', 'do not filter terminal output')
    .action(async (ref: string, options: ApiOptions & Output) => {
      checkStream(options.stream);
      const api = await connect(context, options);
      const { id } = await findAgent(api, ref);
      const query = { session_id: options.session, stream: options.stream, tail: options.tail };
      const response = await api.open('getOutput', { params: { agent_id: id }, query });
      await printBytes(io, response, options.raw ? null : supportsColor(io.stdout, io.env));
    });
}

function addSearch(agents: Command, context: Context): void {
  const { io } = context;
  remote(agents, 'search <agent> <text>', "search an agent's output and conversation").action(
    async (ref: string, text: string, options: Options) => {
      const api = await connect(context, options);
      const { id } = await findAgent(api, ref);
      const hits = await api.all('searchLog', { params: { agent_id: id }, query: { q: text } });
      await printRows(
        io,
        hits,
        [
          { title: 'SEQ', value: (hit) => hit.seq },
          { title: 'TIME', value: (hit) => new Date(hit.ts * 1000).toISOString() },
          { title: 'STREAM', value: (hit) => hit.stream },
          { title: 'TEXT', value: (hit) => hit.snippet },
        ],
        options,
      );
    },
  );
}

function addChanges(agents: Command, context: Context): void {
  const { io } = context;
  remote(agents, 'changes <agent>', 'list what an agent changed in its workdir')
    .option('--patch', 'print one patch for git apply, including binary files')
    .action(async (ref: string, options: Options & { patch?: boolean }) => {
      if (options.patch && options.json) throw usage('give either --patch or --json');
      const api = await connect(context, options);
      const { id } = await findAgent(api, ref);
      if (options.patch) {
        const args = { params: { agent_id: id }, headers: { accept: 'text/x-diff' } };
        return printBytes(io, await api.open('getChanges', args), false);
      }
      const changes = await api.call('getChanges', { params: { agent_id: id } });
      if (options.json) return printJson(io, changes);
      if (!changes.git) return reportMissing(io, changes);
      await printRows(
        io,
        changes.files,
        [
          { title: 'STATUS', value: (file) => file.status },
          { title: '+', value: (file) => file.additions },
          { title: '-', value: (file) => file.deletions },
          { title: 'PATH', value: (file) => (file.from ? `${file.from} -> ${file.path}` : file.path) },
        ],
        options,
      );
      reportMissing(io, changes);
    });
}

/** Says why a list of files is empty or incomplete. */
function reportMissing(io: Io, { git, truncated }: { git: boolean; truncated: boolean }): void {
  if (!git) printStatus(io, 'the workdir is not a git repository');
  else if (truncated) printStatus(io, 'the list is incomplete: there are more files');
}

function addFiles(agents: Command, context: Context): void {
  const { io } = context;
  remote(agents, 'files <agent> [words...]', "find files in an agent's workdir by name").action(
    async (ref: string, text_parts: string[], options: Options) => {
      const api = await connect(context, options);
      const { id } = await findAgent(api, ref);
      const found = await api.call('findFiles', {
        params: { agent_id: id },
        query: { q: text_parts.join(' ') },
      });
      if (options.json) return printJson(io, found);
      if (!found.git) return reportMissing(io, found);
      await printRows(io, found.paths, [{ title: 'PATH', value: (path) => path }], options);
      reportMissing(io, found);
    },
  );
}

function addDiff(agents: Command, context: Context): void {
  const { io } = context;
  remote(agents, 'diff <agent> [path...]', 'show the diff of all changed files, or of the given ones')
    .option(
      '-U, --context <lines>',
      'unchanged lines around each change; default: as git is configured',
      integer,
    )
    .option('--raw', 'do not filter terminal output')
    .action(async (ref: string, paths: string[], options: Options & { raw?: boolean; context?: number }) => {
      const api = await connect(context, options);
      const { id } = await findAgent(api, ref);
      const params = { agent_id: id };
      const changes = paths.length > 0 ? null : await api.call('getChanges', { params });
      const selected_paths = changes?.files.map(({ path }) => path) ?? paths;
      const clean = io.stdout.isTTY && !options.raw;
      const filter = new TerminalFilter({ colors: false });
      for (const path of selected_paths) {
        const change = await api.call('getChange', {
          params: { ...params, path },
          query: { context: options.context },
        });
        if (options.json) await print(io, jsonText(change));
        else if (change.diff === '') await print(io, `${printable(change.path)}: binary, ${change.status}\n`);
        else await print(io, clean ? filter.write(change.diff) : change.diff);
        if (change.truncated && !options.json)
          printStatus(io, printable(`${change.path}: only the beginning of the diff is shown`));
      }
      if (changes && !options.json) reportMissing(io, changes);
    });
}

/**
 * Writes the bytes of a response. On a terminal, they are filtered, with or without colors; `colors` null: never filtered.
 */
async function printBytes(io: Io, response: Response, colors: boolean | null): Promise<void> {
  if (!io.stdout.isTTY || colors === null) {
    for await (const chunk of response.body ?? []) await print(io, chunk);
    return;
  }
  const filter = new TerminalFilter({ colors });
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    await print(io, filter.write(decoder.decode(chunk, { stream: true })));
  }
  await print(io, filter.end());
}

interface Input {
  eof?: boolean;
  newline: boolean;
}

interface Output {
  session?: string;
  stream?: StreamName;
  tail?: number;
  raw?: boolean;
}

/** Splits text into pieces that fit into a request, without splitting a character. */
function* parts(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    let end = Math.min(at + limits.cli_input_chars, text.length);
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1]!)) end -= 1;
    yield text.slice(at, end);
    at = end;
  }
}
