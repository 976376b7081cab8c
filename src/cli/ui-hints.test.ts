/** Every command that the web UI shows must be one that the command line accepts. */
import { globSync, readFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import type { Context, Io } from './context.ts';
import { program } from './main.ts';
import { runProgram } from './program.ts';

const WEB = new URL('../web/', import.meta.url).pathname;

/** Commands are whole strings, whole elements or whole lines of JSX text that begin with `svc`. */
const COMMAND =
  /(?:"(svc [^"\n]*)"|'(svc (?:[^'\\\n]|\\.)*)'|`(svc [^`\n]*)`|>(svc [^<\n]*)<|^\s*(svc .*)$)/gm;

interface Hint {
  file: string;
  text: string;
}

function hints(): Hint[] {
  const files = globSync('**/*.{ts,tsx}', { cwd: WEB }).filter((file) => !file.includes('.test.'));
  return files.flatMap((file) =>
    [...readFileSync(WEB + file, 'utf8').matchAll(COMMAND)].map((match) => ({
      file,
      text: match.slice(1).find((group) => group !== undefined) ?? '',
    })),
  );
}

/** The arguments after `svc`. Each interpolated value is one argument. */
function argvOf(text: string): string[] {
  const words = text.replaceAll(/\$\{[^}]*\}/g, 'VALUE').match(/'[^']*'|\S+/g) ?? [];
  return words.slice(1).map((word) => word.replace(/^'(.*)'$/, '$1'));
}

/** Lets every command parse its arguments without running. */
function withoutActions(command: Command): void {
  for (const child of command.commands) {
    if (child.commands.length > 0) withoutActions(child);
    else child.action(() => {});
  }
}

async function parse(argv: string[]): Promise<{ code: number; errors: string }> {
  let errors = '';
  const sink = new PassThrough();
  sink.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const io: Io = {
    env: {},
    cwd: '/',
    home: '/',
    stdin: new PassThrough(),
    stdout: new PassThrough().resume(),
    stderr: sink,
    signal: new AbortController().signal,
  };
  const svc = await program({ io, local: { version: '0.0.0' } as Context['local'] });
  withoutActions(svc);
  // Without this, an unknown first word would be an argument of the default command.
  if (!svc.commands.some((command) => command.name() === argv[0]))
    return { code: 2, errors: 'unknown command' };
  const code = await runProgram(svc, argv, io);
  return { code, errors };
}

test.each(hints())('$file shows a valid command: $text', async ({ text }) => {
  expect(await parse(argvOf(text))).toEqual({ code: 0, errors: '' });
});

test('hints are found in the screens', () => {
  expect(hints().map(({ text }) => text)).toContain('svc tokens create NAME');
});

test.each(['agents logs X', 'agents ls --no-such-option', 'no-such-command'])(
  '`svc %s` is recognised as invalid',
  async (line) => {
    expect((await parse(line.split(' '))).code).not.toBe(0);
  },
);
