/** Asks the person at the terminal. Secrets are typed without echo and never come from arguments. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { addAbortSignal, type Readable, Writable } from 'node:stream';
import { text as readAll, buffer as readBytes } from 'node:stream/consumers';
import type { Io } from './context.ts';
import { exitCodes, Failure, failed, usage } from './failure.ts';

/** The input of `ask` ended without an answer (Ctrl-D). A command that does not handle this ends as after Ctrl-C. */
export class InputEnded extends Failure {
  constructor() {
    super(exitCodes.interrupted, '');
  }
}

/** Reads one line from the terminal; a `secret` one is not echoed. Throws `InputEnded`, or another `Failure` after Ctrl-C. */
export async function ask(io: Io, question: string, options: { secret?: boolean } = {}): Promise<string> {
  if (!io.stdin.isTTY) throw usage(`cannot ask for ${question}: standard input is not a terminal`);
  // readline echoes typed text to its output, so a secret gets an output that discards everything.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({
    input: io.stdin,
    output: options.secret ? nowhere : io.stderr,
    terminal: true,
    historySize: 0,
    prompt: `${question}: `,
  });
  try {
    // Written only now, because the terminal has stopped echoing.
    if (options.secret) io.stderr.write(`${question}: `);
    else lines.prompt();
    return await new Promise<string>((resolve, reject) => {
      const stop = () => reject(new Failure(exitCodes.interrupted, ''));
      lines.once('line', resolve);
      lines.once('SIGINT', stop);
      lines.once('close', () => reject(new InputEnded()));
      io.signal.addEventListener('abort', stop, { once: true });
    });
  } finally {
    lines.close();
    if (options.secret) io.stderr.write('\n');
  }
}

/** Standard input that Ctrl-C ends: reading then throws, even if the writer keeps it open. */
export function openStdin({ stdin, signal }: Pick<Io, 'stdin' | 'signal'>): Readable {
  return addAbortSignal(signal, stdin);
}

/** The first line of a file or of standard input (`-`), for secrets in scripts. */
export async function firstLine(io: Io, file: string): Promise<string> {
  const all = file === '-' ? await readAll(openStdin(io)) : await readFile(resolve(io.cwd, file), 'utf8');
  return all.split(/\r?\n/, 1)[0]!;
}

/** Text from an argument, or all of standard input (`-`) without the final newline. */
export async function textOrStdin(io: Io, text: string): Promise<string> {
  if (text !== '-') return text;
  const bytes = await readBytes(openStdin(io));
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '');
  } catch {
    throw failed('standard input is not UTF-8 text');
  }
}

/** A password: from the named file, else typed, else the first line of standard input. */
export async function password(
  io: Io,
  question: string,
  file: string | undefined,
  options: { twice?: boolean } = {},
): Promise<string> {
  if (file !== undefined) return firstLine(io, file);
  if (!io.stdin.isTTY) return firstLine(io, '-');
  const typed = await ask(io, question, { secret: true });
  if (options.twice && (await ask(io, `${question} again`, { secret: true })) !== typed) {
    throw usage('the two passwords are not the same');
  }
  return typed;
}

/**
 * A short-lived secret of little value, which may be passed as an argument; `-`: the first line of standard input. On a
 * terminal, it is typed or pasted without being shown.
 */
export async function readShortSecret(io: Io, question: string, value: string | undefined): Promise<string> {
  if (value === undefined || (value === '-' && io.stdin.isTTY))
    return (await ask(io, question, { secret: true })).trim();
  return value === '-' ? (await readAll(openStdin(io))).split('\n', 1)[0]!.trim() : value;
}
