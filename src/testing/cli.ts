/** Runs CLI commands in this process, with a terminal or a pipe, for tests. */
import { PassThrough } from 'node:stream';
import type { Context, Io, LocalOperations } from '../cli/context.ts';
import { runCli } from '../cli/main.ts';
import { configKeys } from '../core/config.ts';

export interface RunResult {
  code: number;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  env?: Record<string, string>;
  home: string;
  /** Standard input, which then ends. With `typed`, its lines come from a terminal, one for each question. */
  input?: string | Buffer;
  typed?: string[];
  /** Standard input, which stays open. */
  open_input?: string;
  tty?: boolean;
  /** The width of the terminal. */
  columns?: number;
  local?: Partial<LocalOperations>;
  signal?: AbortSignal;
  onStdout?: (text: string) => void;
  onStderr?: (text: string) => void;
}

export async function run(argv: string[], options: RunOptions): Promise<RunResult> {
  const result: RunResult = { code: -1, stdout: '', stderr: '' };
  const typed = [...(options.typed ?? [])];
  const stdin: Io['stdin'] = new PassThrough();
  if (options.typed) {
    stdin.isTTY = true;
    stdin.setRawMode = () => stdin;
  } else if (options.open_input !== undefined) {
    (stdin as PassThrough).write(options.open_input);
  } else {
    (stdin as PassThrough).end(options.input ?? '');
  }
  const sink = (name: 'stdout' | 'stderr', tty: boolean) => {
    const stream: Io['stdout'] = new PassThrough();
    stream.isTTY = tty;
    if (options.columns !== undefined) stream.columns = options.columns;
    stream.on('data', (chunk: Buffer) => {
      result[name] += chunk.toString();
      options[name === 'stdout' ? 'onStdout' : 'onStderr']?.(chunk.toString());
      const prompted = name === 'stderr' && /: $/.test(chunk.toString());
      if (prompted && typed.length > 0)
        setImmediate(() => (stdin as PassThrough).write(`${typed.shift()}\r`));
    });
    return stream;
  };
  const io: Io = {
    env: options.env ?? {},
    cwd: options.home,
    home: options.home,
    stdin,
    stdout: sink('stdout', options.tty ?? false),
    stderr: sink('stderr', options.tty ?? false),
    signal: options.signal ?? new AbortController().signal,
  };
  const context: Context = { io, local: { ...fakeLocal(options.home), ...options.local } };
  result.code = await runCli(argv, context);
  await new Promise((resolve) => setImmediate(resolve));
  return result;
}

/** A machine without a running service or a configuration. */
function fakeLocal(home: string): LocalOperations {
  const refuse = () => Promise.reject(new Error('not available in this test'));
  return {
    version: '0.0.0',
    defaultConfigFile: () => `${home}/config.toml`,
    loadConfig: async ({ values }) => {
      const entry = (key: keyof typeof configKeys) => {
        const flag = values.get(key);
        return flag
          ? { value: flag.text, origin: 'flag', source: flag.flag }
          : { value: key === 'data_dir' ? home : configKeys[key].default, origin: 'default', source: null };
      };
      return {
        entry,
        get: (key: keyof typeof configKeys) => entry(key).value,
        file: null,
        warnings: [],
      } as never;
    },
    serve: refuse,
    holderOf: () => Promise.resolve(null),
    terminate: refuse,
    backup: refuse,
    restore: refuse,
    moveDatabase: refuse,
    doctor: () => Promise.resolve([]),
    openBrowser: () => Promise.resolve(false),
  };
}
