/**
 * Looks for programs as an agent would find them: on the agents' PATH, with their environment, below their HOME, as the
 * user that they run as and in their sandbox. It starts what it found to hear its version, by argv, a few at a time and each within a time.
 * Of variables it tells that they are set, of files that they are there, and of neither what is in them.
 */
import { access, constants, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { limits } from '../base/limits.ts';
import type { ProgramFinding, ProgramQuestion } from '../domain/node.ts';
import { invalid, Problem } from '../domain/problem.ts';
import type { Exec, ExecOptions, ExecResult } from './exec.ts';
import { asUser, type RunAs } from './run-as.ts';

export interface ProbeOptions {
  exec: Exec;
  /** What agents get. */
  env: Record<string, string>;
  run_as: RunAs | null;
  /** What goes in front of every program that is run, as in front of an agent. */
  confinement: readonly string[];
}

const PROGRAM = /^[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}$/;

/** Findings in the order of the questions. Throws `invalid` before anything was looked at. */
export async function probe(
  questions: readonly ProgramQuestion[],
  options: ProbeOptions,
): Promise<ProgramFinding[]> {
  mustBeFew('programs', questions, limits.probe_programs_max);
  questions.forEach(mustMakeSense);
  const findings: ProgramFinding[] = [];
  const left = [...questions.entries()];
  const lookOn = async () => {
    for (let next = left.shift(); next; next = left.shift()) {
      const [at, question] = next;
      findings[at] = await look(question, options);
    }
  };
  await Promise.all(Array.from({ length: limits.probe_parallel }, lookOn));
  return findings;
}

function mustBeFew(what: string, items: readonly unknown[], max: number): void {
  if (items.length > max) throw invalid(`${what} must have at most ${max} entries`);
}

function mustMakeSense({ program, version_argv, env, files }: ProgramQuestion): void {
  mustBeFew('version_argv', version_argv, limits.probe_items_max);
  mustBeFew('env', env, limits.probe_items_max);
  mustBeFew('files', files, limits.probe_items_max);
  if (!PROGRAM.test(program)) throw invalid('program must be a plain name');
  if (!PROGRAM.test(version_argv[0] ?? '')) throw invalid('version_argv must begin with a plain name');
  const outside = files.some(
    (path) => isAbsolute(path) || path.includes('\0') || path.split('/').includes('..'),
  );
  if (outside) throw invalid('files must lie below the home directory');
}

async function look(question: ProgramQuestion, options: ProbeOptions): Promise<ProgramFinding> {
  const { program, version_argv, env, files } = question;
  const path = await find(program, options);
  const [teller, ...rest] = version_argv as [string, ...string[]];
  const told_by = path === null || teller === program ? path : await find(teller, options);
  return {
    path,
    version: told_by === null ? null : await versionOf([told_by, ...rest], options),
    env_set: env.filter((name) => Object.hasOwn(options.env, name) && options.env[name] !== ''),
    files_found: await present(files, options.env.HOME),
  };
}

async function find(program: string, options: ProbeOptions): Promise<string | null> {
  for (const folder of options.env.PATH?.split(':') ?? []) {
    // A relative one means another folder to every agent.
    if (!isAbsolute(folder)) continue;
    const path = join(folder, program);
    const found = await stat(path).catch(() => null);
    if (found?.isFile() && (await mayRun(path, options))) return path;
  }
  return null;
}

async function mayRun(path: string, { exec, env, run_as }: ProbeOptions): Promise<boolean> {
  if (run_as === null) {
    return access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
  }
  // We are root, whom every folder lets in: the user has to try.
  const tried = await attempt(exec.run(asUser(['test', '-x', path], run_as), bounds(env)));
  return tried?.code === 0;
}

/** Null for a program that fails, hangs or says nothing. */
async function versionOf(
  argv: [string, ...string[]],
  { exec, env, run_as, confinement }: ProbeOptions,
): Promise<string | null> {
  const result = await attempt(
    exec.run(asUser([...confinement, ...argv] as [string, ...string[]], run_as), bounds(env)),
  );
  if (result?.code !== 0 || result.timed_out) return null;
  const lines = stripVTControlCharacters(result.stdout.toString()).split('\n');
  const line = lines.map((text) => text.trim()).find((text) => text !== '');
  return line?.slice(0, limits.probe_version_chars_max) ?? null;
}

/** Null when it could not be started. A node that closes is another matter. */
function attempt(run: Promise<ExecResult>): Promise<ExecResult | null> {
  return run.catch((error: unknown) => {
    if (error instanceof Problem) throw error;
    return null;
  });
}

function bounds(env: Record<string, string>): ExecOptions {
  return {
    cwd: '/',
    env,
    output_bytes_max: limits.probe_output_bytes_max,
    timeout_ms: limits.probe_version_ms,
  };
}

async function present(files: readonly string[], home: string | undefined): Promise<string[]> {
  if (!home || !isAbsolute(home)) return [];
  const there = await Promise.all(
    files.map((path) =>
      stat(join(home, path)).then(
        () => true,
        () => false,
      ),
    ),
  );
  return files.filter((_, at) => there[at]);
}
