/**
 * How a process of either role starts: prepares and locks the data directory, and closes everything again if the
 * start fails.
 */
import { rfc3339, systemClock } from '../base/clock.ts';
import type { Config } from '../core/config.ts';
import type { Problem } from '../core/problem.ts';
import { Closing } from './closing.ts';
import { prepareDataDir } from './data-dir.ts';
import { lockDataDir } from './lock.ts';

export interface StartContext {
  data_dir: string;
  /** What must be closed at the end; the data directory is released last. */
  opened: Closing;
  /** Records the URL of the process, for a second start and for the CLI. */
  listening(url: string): void;
  /** Records the certificate at that URL, PEM, so that the CLI trusts it. */
  certified(certificate: string): void;
  /** Reports that the process cannot continue and must stop. Only the first call has an effect. */
  fail(problem: Problem): void;
  /** Resolves once `fail` was called. */
  failed: Promise<Problem>;
}

/** Throws a Problem if the data directory is not usable, and the errors of `open`. */
export async function start<T>(config: Config, open: (context: StartContext) => Promise<T>): Promise<T> {
  const data_dir = await prepareDataDir(config.get('data_dir'));
  const lock = lockDataDir(data_dir, rfc3339(systemClock.now()));
  const opened = new Closing();
  opened.push(() => lock.release());
  const { promise: failed, resolve: fail } = Promise.withResolvers<Problem>();
  try {
    const { listening, certified } = lock;
    return await open({ data_dir, opened, listening, certified, fail, failed });
  } catch (error) {
    await opened.close();
    throw error;
  }
}
