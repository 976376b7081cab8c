/** Prepares the examination: a git repository to work in, a home folder if needed, and the environment. */
import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, realpath, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { COOKIE } from './leftovers.ts';
import type { ModelSettings } from './model/agent-settings.ts';

const execute = promisify(execFile);
const README = 'README.md';

/**
 * Variables that could lead an agent to its vendor or to the user's own settings, although it should use the scripted
 * model.
 */
const VENDORS =
  /^(ANTHROPIC|CLAUDE|CODEX|GEMINI|GOOGLE|GOOSE|OPENAI|OPENCODE|QWEN|XDG)_|_(API_KEY|AUTH_TOKEN)$|^(https?|all|no)_proxy$/i;

export interface EnvironmentParts {
  own: Readonly<Record<string, string | undefined>>;
  /** The variables of the preset. */
  preset_env: Readonly<Record<string, string>>;
  cookie: string;
  /** Null: the agent uses its own model and settings. */
  model_settings: ModelSettings | null;
}

export class Workspace {
  readonly #folder: string;
  readonly work: string;

  static async make(): Promise<Workspace> {
    const workspace = new Workspace(await realpath(await mkdtemp(join(tmpdir(), 'svc-agent-doctor-'))));
    try {
      await makeRepository(workspace.work);
      return workspace;
    } catch (error) {
      workspace.remove();
      throw new Error(`no git repository to work in: ${(error as Error).message}`, { cause: error });
    }
  }

  private constructor(folder: string) {
    this.#folder = folder;
    this.work = join(folder, 'work');
  }

  /** Writes the given files into the home folder of the environment. */
  async write({ files }: ModelSettings): Promise<void> {
    for (const [name, text] of Object.entries({ '.gitconfig': '', ...files })) {
      const path = join(this.#home, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, text, { mode: 0o600 });
    }
  }

  /**
   * The environment of this program without the service's secrets, and with the agent's usual variables. For the
   * scripted model, also without variables of vendors.
   */
  environment({ own, preset_env, cookie, model_settings }: EnvironmentParts): Record<string, string> {
    const kept = Object.entries(own).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined &&
        // Inside an agent of the service, these variables would identify that agent.
        (!entry[0].startsWith('SVC_') || entry[0] === 'SVC_SESSION_ID') &&
        (model_settings === null || !VENDORS.test(entry[0])),
    );
    const redirected = model_settings && { HOME: this.#home, ...model_settings.env };
    return { ...preset_env, ...Object.fromEntries(kept), ...redirected, [COOKIE]: cookie };
  }

  /** Files that did not exist at the beginning. */
  async newFiles(): Promise<string[]> {
    return (await readdir(this.work)).filter((name) => name !== '.git' && name !== README).sort();
  }

  /** Synchronous, so that it can run last in a process. */
  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }

  get #home(): string {
    return join(this.#folder, 'home');
  }
}

async function makeRepository(path: string): Promise<void> {
  await mkdir(path);
  await writeFile(join(path, README), 'A folder of the agent doctor. It is deleted after the examination.\n');
  const env = { PATH: process.env.PATH, HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' };
  const git = (...args: string[]) => execute('git', ['-C', path, ...args], { env });
  await git('init', '--quiet', '--initial-branch=main');
  await git('add', README);
  const author = ['-c', 'user.name=svc', '-c', 'user.email=svc@localhost'];
  await git(...author, 'commit', '--quiet', '--message', 'A folder to work in');
}
