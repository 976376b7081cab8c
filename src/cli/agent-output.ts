/** What agents took in, wrote and changed: input, sessions, output, search, changes, diff. */
import type { Command } from 'commander';
import { limits } from '../base/limits.ts';
import type { StreamName } from '../domain/event.ts';
import { type ApiOptions, connect, findAgent } from './api.ts';
import type { Context } from './context.ts';
import { failed } from './failure.ts';
import { checkStream } from './logs.ts';
import { remote, wholeNumber } from './options.ts';
import { colours, print, printJson, printRows, say } from './output.ts';
import { TerminalFilter, visible } from './terminal.ts';

type Options = ApiOptions & { json?: boolean };

export function addAgentOutput(agents: Command, context: Context): void {
  const { io } = context;

  remote(agents, 'input <agent> [text]', "write to an agent's stdin; without text, what stands in ours")
    .option('--eof', 'close its stdin afterwards')
    .option('-n, --no-newline', 'do not end the text with a newline')
    .action(async (ref: string, text: string | undefined, options: Options & Input) => {
      const api = await connect(context, options);
      const { id } = await findAgent(api, ref);
      const send = (data: string, eof: boolean) =>
        api.patiently('sendInput', {
          params: { agent_id: id },
          body: { data, eof },
          idempotency_key: crypto.randomUUID(),
        });
      if (text !== undefined) {
        await send(options.newline ? `${text}\n` : text, options.eof ?? false);
        return;
      }
      const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
      const decode = (chunk?: Uint8Array) => {
        try {
          return decoder.decode(chunk, { stream: chunk !== undefined });
        } catch {
          throw failed('standard input is not UTF-8 text: what follows is not sent');
        }
      };
      for await (const chunk of io.stdin) {
        const piece = typeof chunk === 'string' ? chunk : decode(chunk);
        for (const part of parts(piece)) await send(part, false);
      }
      decode();
      if (options.eof) await send('', true);
    });

  remote(agents, 'sessions <agent>', 'list the launches of an agent, newest first').action(
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

  remote(agents, 'output <agent>', 'the raw bytes of one session')
    .option('--session <id>', 'a session; default: the latest')
    .option('--stream <name>', 'only stdout, or only stderr')
    .option('--tail <bytes>', 'only the last bytes', wholeNumber)
    .option('--raw', 'do not clean what is written to a terminal')
    .action(async (ref: string, options: Options & Output) => {
      checkStream(options.stream);
      const api = await connect(context, options);
      const { id } = await findAgent(api, ref);
      const query = { session_id: options.session, stream: options.stream, tail: options.tail };
      const response = await api.open('getOutput', { params: { agent_id: id }, query });
      if (!io.stdout.isTTY || options.raw) {
        for await (const chunk of response.body ?? []) await print(io, chunk);
        return;
      }
      const filter = new TerminalFilter({ colours: colours(io.stdout, io.env) });
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) {
        await print(io, filter.write(decoder.decode(chunk, { stream: true })));
      }
      await print(io, filter.end());
    });

  remote(agents, 'search <agent> <text>', 'find text in what an agent wrote, said and did').action(
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

  remote(agents, 'changes <agent>', 'list what an agent changed in its workdir').action(
    async (ref: string, options: Options) => {
      const api = await connect(context, options);
      const { id } = await findAgent(api, ref);
      const changes = await api.call('getChanges', { params: { agent_id: id } });
      if (options.json) return printJson(io, changes);
      if (!changes.git) return say(io, 'the workdir is no git repository');
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
      if (changes.truncated) say(io, 'there are more');
    },
  );

  remote(agents, 'files <agent> [words...]', "find files in an agent's workdir by their names").action(
    async (ref: string, words: string[], options: Options) => {
      const api = await connect(context, options);
      const { id } = await findAgent(api, ref);
      const found = await api.call('findFiles', { params: { agent_id: id }, query: { q: words.join(' ') } });
      if (options.json) return printJson(io, found);
      if (!found.git) return say(io, 'the workdir is no git repository');
      await printRows(io, found.paths, [{ title: 'PATH', value: (path) => path }], options);
      if (found.truncated) say(io, 'there are more');
    },
  );

  remote(agents, 'diff <agent> [path...]', 'show the unified diff of all changed files, or of these')
    .option('--raw', 'do not clean what is written to a terminal')
    .action(async (ref: string, paths: string[], options: Options & { raw?: boolean }) => {
      const api = await connect(context, options);
      const { id } = await findAgent(api, ref);
      const params = { agent_id: id };
      const wanted =
        paths.length > 0 ? paths : (await api.call('getChanges', { params })).files.map(({ path }) => path);
      const clean = io.stdout.isTTY && !options.raw;
      const filter = new TerminalFilter({ colours: false });
      for (const path of wanted) {
        const change = await api.call('getChange', { params: { ...params, path } });
        if (options.json) await print(io, `${JSON.stringify(change)}\n`);
        else if (change.diff === '') await print(io, `${visible(change.path)}: binary, ${change.status}\n`);
        else await print(io, clean ? filter.write(change.diff) : change.diff);
        if (change.truncated && !options.json) say(io, visible(`${change.path}: the diff goes on`));
      }
    });
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

/** Pieces that fit into a request, never cut inside a character. */
function* parts(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    let end = Math.min(at + limits.cli_input_chars, text.length);
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1]!)) end -= 1;
    yield text.slice(at, end);
    at = end;
  }
}
