/**
 * Looks for programs as an agent would find them: on the agents' PATH, with their environment, below their HOME, as
 * their user and in their sandbox. It runs each program that it finds to get the version, a few at a time and with a
 * time limit. It reports whether variables are set and whether files exist, but never their contents.
 */
import { access, constants, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { ProgramFinding, ProgramQuestion } from '../../core/node.ts';
import { invalid, Problem } from '../../core/problem.ts';
import { asUser, type RunAs } from '../confinement/run-as.ts';
import { seccompFilter } from '../confinement/seccomp-filter.ts';
import { limits } from '../limits.ts';
import type { Exec, ExecOptions, ExecResult } from './exec.ts';
import { systemTool } from './tools.ts';

export interface ProbeOptions {
  exec: Exec;
  /** The environment of agents. */
  env: Record<string, string>;
  run_as: RunAs | null;
  /** `Sandbox.folders({ kind: 'programs' })`, or empty. */
  confinement: readonly string[];
}

const PROGRAM = /^[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}$/;

/** Returns the findings in the order of the questions. Throws `invalid` before it reads anything; see `Node.probe`. */
export async function probe(
  questions: readonly ProgramQuestion[],
  options: ProbeOptions,
): Promise<ProgramFinding[]> {
  checkCount('programs', questions, limits.probe_programs_max);
  questions.forEach(checkQuestion);
  const findings: ProgramFinding[] = [];
  const left = [...questions.entries()];
  const lookNext = async () => {
    for (let next = left.shift(); next; next = left.shift()) {
      const [at, question] = next;
      findings[at] = await locateProgram(question, options);
    }
  };
  await Promise.all(Array.from({ length: limits.probe_parallel }, lookNext));
  return findings;
}

function checkCount(what: string, items: readonly unknown[], max: number): void {
  if (items.length > max) throw invalid(`${what} must have at most ${max} entries`);
}

function checkQuestion({ program, version_argv, env, files }: ProgramQuestion): void {
  checkCount('version_argv', version_argv, limits.probe_items_max);
  checkCount('env', env, limits.probe_items_max);
  checkCount('files', files, limits.probe_items_max);
  if (!PROGRAM.test(program)) throw invalid('program must be a plain name');
  if (!PROGRAM.test(version_argv[0] ?? '')) throw invalid('version_argv must begin with a plain name');
  const outside = files.some(
    (path) => isAbsolute(path) || path.includes('\0') || path.split('/').includes('..'),
  );
  if (outside) throw invalid('files must be below the home directory');
}

async function locateProgram(question: ProgramQuestion, options: ProbeOptions): Promise<ProgramFinding> {
  const { program, version_argv, env, files } = question;
  const path = await find(program, options);
  const [version_program, ...rest] = version_argv as [string, ...string[]];
  const version_path =
    path === null || version_program === program ? path : await find(version_program, options);
  return {
    path,
    version: version_path === null ? null : await versionOf([version_path, ...rest], options),
    env_set: env.filter((name) => Object.hasOwn(options.env, name) && options.env[name] !== ''),
    files_found: await existing(files, options.env.HOME),
  };
}

async function find(program: string, options: ProbeOptions): Promise<string | null> {
  for (const folder of options.env.PATH?.split(':') ?? []) {
    // A relative path means a different folder for each agent.
    if (!isAbsolute(folder)) continue;
    const path = join(folder, program);
    const found = await stat(path).catch(() => null);
    if (found?.isFile() && (await isExecutable(path, options))) return path;
  }
  return null;
}

async function isExecutable(path: string, { exec, env, run_as }: ProbeOptions): Promise<boolean> {
  if (run_as === null) {
    return access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
  }
  // The service is root and can enter every folder, so the check must run as the agents' user.
  const tried = await attempt(exec.run(asUser([systemTool('test'), '-x', path], run_as), bounds(env)));
  return tried?.code === 0;
}

/** Returns the first line that a program prints; null if it fails, hangs or prints nothing. */
async function versionOf(
  argv: [string, ...string[]],
  { exec, env, run_as, confinement }: ProbeOptions,
): Promise<string | null> {
  const result = await attempt(
    exec.run(asUser([...confinement, ...argv] as [string, ...string[]], run_as), {
      ...bounds(env),
      ...(confinement.length > 0 && { stdin: seccompFilter() }),
    }),
  );
  if (result?.code !== 0 || result.timed_out) return null;
  const lines = stripVTControlCharacters(result.stdout.toString()).split('\n');
  const line = lines.map((text) => text.trim()).find((text) => text !== '');
  return line?.slice(0, sharedLimits.probe_version_chars_max) ?? null;
}

/** Returns null if the program could not be started. Rethrows Problems, such as that of a closing node. */
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

async function existing(files: readonly string[], home: string | undefined): Promise<string[]> {
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
