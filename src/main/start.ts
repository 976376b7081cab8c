/** How a process of either role begins: its data directory made ready and held, and everything closed again if it fails. */
import { rfc3339, systemClock } from '../base/clock.ts';
import type { Config } from '../contract/config.ts';
import { Closing } from './closing.ts';
import { prepareDataDir } from './data-dir.ts';
import { lockDataDir } from './lock.ts';

export interface Held {
  data_dir: string;
  /** What is to be closed at the end; the data directory is let go of last. */
  opened: Closing;
  /** Notes where the process can be reached, for a second start and for the CLI. */
  listening(url: string): void;
}

/** Throws a Problem when the data directory refuses, and what `open` throws. */
export async function start<T>(config: Config, open: (held: Held) => Promise<T>): Promise<T> {
  const data_dir = await prepareDataDir(config.get('data_dir'));
  const lock = lockDataDir(data_dir, rfc3339(systemClock.now()));
  const opened = new Closing();
  opened.push(() => lock.release());
  try {
    return await open({ data_dir, opened, listening: (url) => lock.listening(url) });
  } catch (error) {
    await opened.close();
    throw error;
  }
}
