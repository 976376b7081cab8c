/**
 * Runs git on untrusted repositories. Paths and refs are passed in argv after `--` or `--end-of-options`. Hooks,
 * fsmonitor, prompts, fetches, submodules, external diffs and the repository's own filters are disabled, and only a
 * short list of variables is passed on. Filters of the machine's configuration (git-lfs) stay, because they are the
 * operator's.
 *
 * This protects the operator's repositories from accidents. It is no defense against an agent, which can add a filter
 * between this module's check and git's. So git runs in a worker with no more rights than the agent (`jobs.ts`).
 */
import { dirname } from 'node:path';
import { limits as sharedLimits } from '../../base/limits.ts';
import { invalid, Problem } from '../../core/problem.ts';
import type { RunAs } from '../confinement/run-as.ts';
import { limits } from '../limits.ts';
import type { Exec, ExecResult } from '../processes/exec.ts';
import { systemTool } from '../processes/tools.ts';

const ENVIRONMENT_KEPT = ['PATH', 'HOME', 'XDG_CONFIG_HOME', 'TMPDIR', 'USER', 'LOGNAME'];

const CONFIG: [string, string][] = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.sshCommand', 'false'],
  ['core.quotePath', 'false'],
  ['credential.helper', ''],
  ['protocol.allow', 'never'],
  ['submodule.recurse', 'false'],
  // Both settings can make git ignore what is on disk.
  ['core.untrackedCache', 'false'],
  ['sparse.expectFilesOutsideOfPatterns', 'false'],
  // Agents write to these files, and git trusts what they say about commits and objects.
  ['core.commitGraph', 'false'],
  ['core.multiPackIndex', 'false'],
  ['diff.submodule', 'short'],
  ['diff.ignoreSubmodules', 'dirty'],
  ['status.submoduleSummary', 'false'],
  ['branch.autoSetupMerge', 'false'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
];

export interface GitOptions {
  exec: Exec;
  /** The service's environment; git gets only a few harmless variables from it. */
  env: Record<string, string | undefined>;
  /** The user of this process if it differs from the service's own; otherwise null. */
  run_as: RunAs | null;
  /** Real folders that git may find a repository in; it never looks above them. */
  roots: () => Promise<string[]>;
  /**
   * Whether git may outlive the launcher that started it. A lock then makes a repeated call wait for the first one
   * instead of running beside it. False if agents have fewer rights than the service, because they can open the folder
   * and hold its lock; git then ends with the worker that started it (`worker-client.ts`).
   */
  locks: boolean;
}

export interface GitCall {
  stdin?: Uint8Array;
  timeout_ms?: number;
  output_bytes_max?: number;
  /** False: keeps the repository's filters, for calls that run no filters. Default: true. */
  filters_off?: boolean;
  /** Replaces the repository's own index. */
  index?: string;
  /**
   * A folder that stays locked while git, or anything it started, runs; see `GitOptions.locks`. Not locked if flock(1)
   * is missing.
   */
  lock?: string;
}

/** A folder in which git looks for its repository, or the repository itself. */
export type GitPlace = string | { git_dir: string };

export class Git {
  readonly #options: GitOptions;
  #has_flock: Promise<boolean> | undefined;

  constructor(options: GitOptions) {
    this.#options = options;
  }

  /**
   * Runs git and returns its output, whatever its exit code. Throws `git_missing`, or `git_timeout` after `timeout_ms`
   * (default: `limits.git_timeout_ms`).
   */
  async run(place: GitPlace, args: readonly string[], call: GitCall = {}): Promise<ExecResult> {
    const overrides = call.filters_off === false ? [] : await this.#filtersOff(place, call.timeout_ms);
    const { exec } = this.#options;
    const env = await this.#environment(overrides);
    const where = typeof place === 'string' ? ['-C', place] : ['--git-dir', place.git_dir];
    const git = ['git', '--no-pager', ...where, ...args] as const;
    const argv =
      call.lock !== undefined && (await this.#canLock())
        ? ([systemTool('flock'), call.lock, ...git] as const)
        : git;
    const result = await exec
      .run(argv, {
        // This folder exists and every user can enter it. The actual folder is passed with -C, so that git reports a
        // failure.
        cwd: '/',
        env: call.index === undefined ? env : { ...env, GIT_INDEX_FILE: call.index },
        ...(call.stdin ? { stdin: call.stdin } : {}),
        output_bytes_max: call.output_bytes_max ?? limits.git_output_bytes_max,
        timeout_ms: call.timeout_ms ?? limits.git_timeout_ms,
      })
      .catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') throw new Problem('unavailable', 'git_missing', 'git is not installed');
        throw error;
      });
    return inTime(result);
  }

  /** Runs git and returns stdout. Throws `git_refused` (400) with git's error message if the exit code is not 0. */
  async output(place: GitPlace, args: readonly string[], call: GitCall = {}): Promise<Buffer> {
    const result = await this.run(place, args, call);
    if (result.code !== 0) throw gitRefused(result);
    return result.stdout;
  }

  /** Runs git and returns one line of stdout; null if the exit code is not 0. */
  async lineOrNull(place: GitPlace, args: readonly string[]): Promise<string | null> {
    const result = await this.run(place, args, {
      filters_off: false,
      timeout_ms: limits.git_lookup_timeout_ms,
    });
    return result.code === 0 ? result.stdout.toString().replace(/\n$/, '') : null;
  }

  /** Waits until nothing that holds this lock is running. Throws `git_timeout` after `limits.git_checkout_timeout_ms`. */
  async waitUntilIdle(lock: string): Promise<void> {
    if (!(await this.#canLock())) return;
    const result = await this.#options.exec.run([systemTool('flock'), lock, systemTool('true')], {
      cwd: '/',
      env: { LC_ALL: 'C' },
      output_bytes_max: 1_000,
      timeout_ms: sharedLimits.git_checkout_timeout_ms,
    });
    inTime(result);
  }

  #canLock(): Promise<boolean> {
    if (!this.#options.locks) return Promise.resolve(false);
    this.#has_flock ??= this.#options.exec
      .run([systemTool('flock'), '--version'], {
        cwd: '/',
        env: { LC_ALL: 'C' },
        output_bytes_max: 1_000,
        timeout_ms: limits.git_lookup_timeout_ms,
      })
      .then(
        ({ code }) => code === 0,
        () => false,
      );
    return this.#has_flock;
  }

  async #environment(overrides: [string, string][]): Promise<Record<string, string>> {
    const { env, run_as, roots } = this.#options;
    const kept = ENVIRONMENT_KEPT.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]));
    // Git refuses repositories of other users. Here it runs as the agents' user, which has no rights to protect.
    const trusted: [string, string][] = run_as ? [['safe.directory', '*']] : [];
    const config = [...CONFIG, ...trusted, ...overrides];
    const ceilings = (await roots()).map(dirname).filter((folder) => !folder.includes(':'));
    return {
      ...(Object.fromEntries(kept) as Record<string, string>),
      ...(run_as ? { HOME: run_as.home, USER: run_as.name, LOGNAME: run_as.name, XDG_CONFIG_HOME: '' } : {}),
      LC_ALL: 'C',
      GIT_TERMINAL_PROMPT: '0',
      GIT_ASKPASS: 'false',
      SSH_ASKPASS: 'false',
      GIT_SSH_COMMAND: 'false',
      GIT_EDITOR: 'false',
      // This overrides the repository's protocol.<name>.allow; no transport has this name.
      GIT_ALLOW_PROTOCOL: 'none',
      GIT_NO_LAZY_FETCH: '1',
      GIT_OPTIONAL_LOCKS: '0',
      // Both could make git show one commit instead of another. The file cannot exist.
      GIT_NO_REPLACE_OBJECTS: '1',
      GIT_GRAFT_FILE: '/dev/null/none',
      GIT_CEILING_DIRECTORIES: ceilings.join(':'),
      GIT_CONFIG_COUNT: String(config.length),
      ...Object.fromEntries(
        config.flatMap(([key, value], index) => [
          [`GIT_CONFIG_KEY_${index}`, key],
          [`GIT_CONFIG_VALUE_${index}`, value],
        ]),
      ),
    };
  }

  /** Settings that disable every filter driver that the repository itself configures. */
  async #filtersOff(place: GitPlace, timeout_ms = Number.POSITIVE_INFINITY): Promise<[string, string][]> {
    const result = await this.run(
      place,
      ['config', '--show-scope', '--null', '--name-only', '--get-regexp', '^filter\\.'],
      { filters_off: false, timeout_ms: Math.min(timeout_ms, limits.git_lookup_timeout_ms) },
    );
    // Exit code 1 means no match. Truncated output could hide a filter.
    if (result.truncated || (result.code !== 0 && result.code !== 1)) {
      throw invalid("the repository's git configuration cannot be read", 'git_refused');
    }
    const fields = result.stdout.toString().split('\0');
    const drivers = new Set<string>();
    for (let index = 0; index + 1 < fields.length; index += 2) {
      const scope = fields[index];
      const driver = /^filter\.(.*)\.[^.]*$/s.exec(fields[index + 1] ?? '')?.[1];
      if (driver !== undefined && scope !== 'system' && scope !== 'global') drivers.add(driver);
    }
    return [...drivers].flatMap((driver): [string, string][] => [
      [`filter.${driver}.clean`, ''],
      [`filter.${driver}.smudge`, ''],
      [`filter.${driver}.process`, ''],
      [`filter.${driver}.required`, 'false'],
    ]);
  }
}

function inTime(result: ExecResult): ExecResult {
  if (result.timed_out) throw new Problem('unavailable', 'git_timeout', 'git did not finish in time');
  return result;
}

/** The error message of a program: its first line with `fatal:` or `error:`, else its first line on stderr. */
export function firstError(result: ExecResult, program = 'git'): string {
  const lines = result.stderr
    .toString()
    .split('\n')
    .map((line) => line.replace(/[\x00-\x1f\x7f]+/g, ' ').trim())
    .filter((line) => line !== '');
  const line = lines.find((line) => /^(fatal|error):/.test(line)) ?? lines[0];
  return (line ?? `${program} ended with ${result.signal ?? `exit code ${result.code}`}`).slice(0, 500);
}

/** The Problem `git_refused` with git's error message, or `git_interrupted` if a signal ended git, which says nothing else. */
export function gitRefused(result: ExecResult, prefix = ''): Problem {
  if (result.code === null) return new Problem('unavailable', 'git_interrupted', firstError(result));
  return invalid(`${prefix}${firstError(result)}`, 'git_refused');
}
