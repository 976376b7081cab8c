/**
 * Runs git on repositories that nobody has to trust. Arguments go by argv, paths and refs behind `--` or
 * `--end-of-options`; hooks, fsmonitor, prompts, fetches, submodules, external diffs and the repository's own filters
 * are off; nothing of our environment but a short list gets in. Filters of the machine's own configuration (git-lfs)
 * stay: they are the operator's. All that is a courtesy to the operator's repositories and no defence: an agent can add
 * a filter between our look and git's, so git runs in a worker with no more rights than the agent (`jobs.ts`).
 */
import { dirname } from 'node:path';
import { limits } from '../../base/limits.ts';
import { invalid, Problem } from '../../domain/problem.ts';
import type { Exec, ExecResult } from '../exec.ts';
import type { RunAs } from '../run-as.ts';

const ENVIRONMENT_KEPT = ['PATH', 'HOME', 'XDG_CONFIG_HOME', 'TMPDIR', 'USER', 'LOGNAME'];

const CONFIG: [string, string][] = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.sshCommand', 'false'],
  ['core.quotePath', 'false'],
  ['credential.helper', ''],
  ['protocol.allow', 'never'],
  ['submodule.recurse', 'false'],
  ['diff.submodule', 'short'],
  ['diff.ignoreSubmodules', 'dirty'],
  ['status.submoduleSummary', 'false'],
  ['branch.autoSetupMerge', 'false'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
];

export interface GitOptions {
  exec: Exec;
  /** The service's environment; only a few harmless variables of it are passed on. */
  env: Record<string, string | undefined>;
  /** Whom this process acts as, where that is not the service's own user. */
  run_as: RunAs | null;
  /** Real folders that git may find a repository in; it never looks above them. */
  roots: () => Promise<string[]>;
}

export interface GitCall {
  stdin?: Uint8Array;
  timeout_ms?: number;
  output_bytes_max?: number;
  /** Off for the look at the configuration itself. */
  filters_off?: boolean;
  /**
   * A folder that is locked while git, or anything that it started, runs. Git can outlive the launcher that it was
   * asked of; whoever asks again then waits for it instead of working beside it. Without flock(1) nothing is locked.
   */
  lock?: string;
}

export class Git {
  readonly #options: GitOptions;
  #has_flock: Promise<boolean> | undefined;

  constructor(options: GitOptions) {
    this.#options = options;
  }

  /** Runs `git -C <folder> …` and answers whatever it said; throws only when it could not run to its end. */
  async run(folder: string, args: readonly string[], call: GitCall = {}): Promise<ExecResult> {
    const overrides = call.filters_off === false ? [] : await this.#filtersOff(folder);
    const { exec } = this.#options;
    const env = await this.#environment(overrides);
    const git = ['git', '--no-pager', '-C', folder, ...args] as const;
    const argv = call.lock && (await this.#canLock()) ? (['flock', call.lock, ...git] as const) : git;
    const result = await exec
      .run(argv, {
        // Always there and open to every user; the folder itself goes by -C, whose failure git words.
        cwd: '/',
        env,
        ...(call.stdin ? { stdin: call.stdin } : {}),
        output_bytes_max: call.output_bytes_max ?? limits.git_output_bytes_max,
        timeout_ms: call.timeout_ms ?? limits.git_timeout_ms,
      })
      .catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') throw new Problem('unavailable', 'git_missing', 'git is not installed');
        throw error;
      });
    if (result.timed_out) throw new Problem('unavailable', 'git_timeout', 'git did not finish in time');
    return result;
  }

  /** As `run`, and a 400 with git's own first line when git refuses. Answers stdout. */
  async ask(folder: string, args: readonly string[], call: GitCall = {}): Promise<Buffer> {
    const result = await this.run(folder, args, call);
    if (result.code !== 0) throw gitRefused(result);
    return result.stdout;
  }

  /** One line of stdout, or null when git refuses. */
  async line(folder: string, args: readonly string[]): Promise<string | null> {
    const result = await this.run(folder, args, { filters_off: false });
    return result.code === 0 ? result.stdout.toString().replace(/\n$/, '') : null;
  }

  /** Resolves when nothing that was started with this lock runs any more. */
  async settled(lock: string): Promise<void> {
    await this.run('/', ['--version'], {
      lock,
      filters_off: false,
      timeout_ms: limits.git_checkout_timeout_ms,
    });
  }

  #canLock(): Promise<boolean> {
    const { PATH = '/usr/bin:/bin' } = this.#options.env;
    this.#has_flock ??= this.#options.exec
      .run(['flock', '--version'], {
        cwd: '/',
        env: { PATH },
        output_bytes_max: 1_000,
        timeout_ms: limits.git_timeout_ms,
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
    // The agents' user may write to a repository of someone else; the check guards git's user from such a repository.
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
      // Stronger than any protocol.<name>.allow of the repository; no transport has this name.
      GIT_ALLOW_PROTOCOL: 'none',
      GIT_NO_LAZY_FETCH: '1',
      GIT_OPTIONAL_LOCKS: '0',
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

  /** Settings that empty every filter driver which the repository itself configures. */
  async #filtersOff(folder: string): Promise<[string, string][]> {
    const result = await this.run(
      folder,
      ['config', '--show-scope', '--null', '--name-only', '--get-regexp', '^filter\\.'],
      { filters_off: false },
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

/** What git says when it refuses: its first `fatal:` or `error:` line, else its first line. */
export function complaint(result: ExecResult, program = 'git'): string {
  const lines = result.stderr
    .toString()
    .split('\n')
    .map((line) => line.replace(/[\x00-\x1f\x7f]+/g, ' ').trim())
    .filter((line) => line !== '');
  const line = lines.find((line) => /^(fatal|error):/.test(line)) ?? lines[0];
  return (line ?? `${program} ended with ${result.signal ?? `exit code ${result.code}`}`).slice(0, 500);
}

export function gitRefused(result: ExecResult, prefix = ''): Problem {
  return invalid(`${prefix}${complaint(result)}`, 'git_refused');
}
