/** JSON that people pass: as an argument, in a file, or on standard input. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Io } from './context.ts';
import { usage } from './failure.ts';
import { textOrStdin } from './prompt.ts';

/** Adds `--NAME JSON` and `--NAME-file FILE`. */
export function withJson(command: Command, name: string, what: string): Command {
  return command
    .option(`--${name} <json>`, what)
    .option(`--${name}-file <file>`, 'the same, read from a file (-: stdin)');
}

/** The value of these options, or undefined if neither is given. Invalid JSON is a usage error. */
export async function parseJsonOption(io: Io, name: string, options: object): Promise<unknown> {
  const values = options as Record<string, string | undefined>;
  const text = values[name];
  const file = values[`${name}File`];
  if (text !== undefined && file !== undefined) throw usage(`give either --${name} or --${name}-file`);
  if (text !== undefined) return parse(text, `--${name}`);
  return file === undefined ? undefined : jsonFile(io, file);
}

/** Returns the value as an object; any other JSON is a usage error. */
export async function parseObjectOption(
  io: Io,
  name: string,
  options: object,
): Promise<Record<string, unknown> | undefined> {
  const value = await parseJsonOption(io, name, options);
  return value === undefined ? undefined : asObject(value, `--${name}`);
}

/**
 * The message to send: text (`-` reads standard input) or the object of `--payload`. Giving both or neither is a
 * usage error.
 */
export async function parseMessageArguments(
  io: Io,
  args: readonly string[],
  options: object,
): Promise<{ text: string } | { payload: Record<string, unknown> }> {
  const payload = await parseObjectOption(io, 'payload', options);
  if (args.length > 0 === (payload !== undefined)) throw usage('give either text or --payload');
  return payload === undefined ? { text: await textOrStdin(io, args.join(' ')) } : { payload };
}

/** `file`: `-` is standard input. */
export async function jsonFile(io: Io, file: string): Promise<unknown> {
  const text = file === '-' ? await textOrStdin(io, '-') : await readFile(resolve(io.cwd, file), 'utf8');
  return parse(text.replace(/^\ufeff/, ''), file === '-' ? 'standard input' : file);
}

export function asObject(value: unknown, what: string): Record<string, unknown> {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw usage(`${what} must be a JSON object`);
  }
  return value as Record<string, unknown>;
}

function parse(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usage(`${what} is not valid JSON: ${(error as Error).message}`);
  }
}
