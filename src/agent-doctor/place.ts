/** Where the examination happens: a git repository to work in, a home where one is needed, the environment. */
import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, realpath, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Dress } from './known.ts';
import { COOKIE } from './leftovers.ts';

const execute = promisify(execFile);
const README = 'README.md';

/** What could lead an agent to its vendor, or to the person's own settings, when it shall speak to the scripted model. */
const VENDORS =
  /^(ANTHROPIC|CLAUDE|CODEX|GEMINI|GOOGLE|GOOSE|OPENAI|OPENCODE|QWEN|XDG)_|_(API_KEY|AUTH_TOKEN)$|^(https?|all|no)_proxy$/i;

export interface EnvironmentParts {
  own: Readonly<Record<string, string | undefined>>;
  /** What the preset sets. */
  usual: Readonly<Record<string, string>>;
  cookie: string;
  /** Null: the agent goes as it is, to its own model. */
  dress: Dress | null;
}

export class Place {
  readonly #folder: string;
  readonly work: string;

  static async make(): Promise<Place> {
    const place = new Place(await realpath(await mkdtemp(join(tmpdir(), 'svc-agent-doctor-'))));
    try {
      await makeRepository(place.work);
      return place;
    } catch (error) {
      place.remove();
      throw new Error(`no git repository to work in: ${(error as Error).message}`, { cause: error });
    }
  }

  private constructor(folder: string) {
    this.#folder = folder;
    this.work = join(folder, 'work');
  }

  /** Writes the files of a dress into the home that the environment will name. */
  async dress({ files }: Dress): Promise<void> {
    for (const [name, text] of Object.entries({ '.gitconfig': '', ...files })) {
      const path = join(this.#home, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, text, { mode: 0o600 });
    }
  }

  /**
   * Ours without secrets of the service, over what is usual for the agent; with a dress also without anything that speaks
   * of vendors.
   */
  environment({ own, usual, cookie, dress }: EnvironmentParts): Record<string, string> {
    const kept = Object.entries(own).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined &&
        // Inside an agent of the service, what runs here stays that agent's.
        (!entry[0].startsWith('SVC_') || entry[0] === 'SVC_SESSION_ID') &&
        (dress === null || !VENDORS.test(entry[0])),
    );
    const dressed = dress && { HOME: this.#home, ...dress.env };
    return { ...usual, ...Object.fromEntries(kept), ...dressed, [COOKIE]: cookie };
  }

  /** Files that were not there in the beginning. */
  async newFiles(): Promise<string[]> {
    return (await readdir(this.work)).filter((name) => name !== '.git' && name !== README).sort();
  }

  /** Synchronous, so that it can be the last thing that a process does. */
  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }

  get #home(): string {
    return join(this.#folder, 'home');
  }
}

async function makeRepository(path: string): Promise<void> {
  await mkdir(path);
  await writeFile(
    join(path, README),
    'A folder of the agent doctor. It goes when the examination is over.\n',
  );
  const env = { PATH: process.env.PATH, HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' };
  const git = (...args: string[]) => execute('git', ['-C', path, ...args], { env });
  await git('init', '--quiet', '--initial-branch=main');
  await git('add', README);
  const author = ['-c', 'user.name=svc', '-c', 'user.email=svc@localhost'];
  await git(...author, 'commit', '--quiet', '--message', 'A folder to work in');
}
