/**
 * What agents on this machine find the actor surface by: a folder with `actor.json` (where the nearest process listens),
 * `ca.pem` (whom to believe) and one token a session. Processes read the files at each call, so a service that is back
 * on another port, or with another certificate, is found by agents of before. A token is in no other file.
 */
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type AgentFolderOptions, openAgentFolder } from './agent-folder.ts';
import type { RunAs } from './run-as.ts';

/** What an agent's process needs to know of the surface. */
export interface ActorSurface {
  /** `https://127.0.0.1:8081`; `http:` where TLS is switched off. */
  endpoint: string;
  /** The name that the certificate is for, where it is not the endpoint's host. */
  server_name: string | null;
  /** PEM; null where TLS is switched off. */
  ca: string | null;
}

/** A token, or the folder of a session that has one of its own. */
const OF_SESSION = /^([A-Za-z0-9][A-Za-z0-9_-]{0,63})\.(?:token|own)$/;

export interface ActorFilesOptions extends AgentFolderOptions {
  /** Each session has a folder of its own with all that it reads: in a sandbox it sees no other. */
  own_folders?: boolean;
}

export class ActorFiles {
  readonly #dir: string;
  readonly #run_as: RunAs | null;
  readonly #own_folders: boolean;
  #announced: ActorSurface | null = null;
  /** After the first announcement, or its failure. */
  readonly #begun = Promise.withResolvers<void>();

  private constructor(dir: string, { run_as, own_folders = false }: ActorFilesOptions) {
    this.#dir = dir;
    this.#run_as = run_as;
    this.#own_folders = own_folders;
  }

  /** Throws an Error, in words for the operator, when the folder cannot be made. */
  static async open(options: ActorFilesOptions): Promise<ActorFiles> {
    const dir = await openAgentFolder('actor', options);
    // Tokens of a time without `run_as` are nobody's any more.
    if (options.run_as) await rm(join(options.data_dir, 'actor'), { recursive: true, force: true });
    return new ActorFiles(dir, options);
  }

  /** Says, also to agents that run already, where the surface is. */
  async announce(surface: ActorSurface): Promise<void> {
    try {
      await this.#tell(this.#dir, surface);
      this.#announced = surface;
      const own = (await readdir(this.#dir)).filter((name) => OF_SESSION.test(name) && name.endsWith('.own'));
      for (const name of own) await this.#tell(join(this.#dir, name), surface);
    } finally {
      this.#begun.resolve();
    }
  }

  /**
   * Puts a session's token where its agent, and nobody else, can read it. Waits for the first announcement: a session may
   * be asked for in the moment in which the listener opens.
   */
  async keep(session_id: string, token: string): Promise<void> {
    await this.#begun.promise;
    const path = this.#tokenPath(session_id);
    if (this.#own_folders) {
      const own = dirname(path);
      await mkdir(own, { recursive: true });
      await chmod(own, this.#run_as ? 0o711 : 0o700);
      if (this.#announced) await this.#tell(own, this.#announced);
    }
    await this.#write(path, `${token}\n`, 0o600, this.#run_as);
  }

  async #tell(dir: string, { ca, endpoint, server_name }: ActorSurface): Promise<void> {
    if (ca !== null) await this.#write(join(dir, 'ca.pem'), ca, 0o644);
    const place = { endpoint, ...(server_name !== null && { server_name }) };
    await this.#write(join(dir, 'actor.json'), `${JSON.stringify(place)}\n`, 0o644);
  }

  #tokenPath(session_id: string): string {
    return join(this.#dir, this.#own_folders ? join(`${session_id}.own`, 'token') : `${session_id}.token`);
  }

  /** The variables of an agent; none where nothing could be announced. */
  environment(session_id: string): Record<string, string> {
    if (!this.#announced) return {};
    const token = this.#tokenPath(session_id);
    return {
      SVC_ACTOR_ENDPOINT: this.#announced.endpoint,
      SVC_ACTOR_TOKEN_FILE: token,
      ...(this.#announced.ca !== null && { SVC_ACTOR_CA_FILE: join(dirname(token), 'ca.pem') }),
    };
  }

  /** The session is over. */
  async drop(session_id: string): Promise<void> {
    for (const kind of ['token', 'own']) {
      await rm(join(this.#dir, `${session_id}.${kind}`), { recursive: true, force: true });
    }
  }

  /** Removes what sessions left behind that ended, or never began, while nobody looked. */
  async sweep(live: ReadonlySet<string>): Promise<void> {
    for (const name of await readdir(this.#dir)) {
      const session_id = OF_SESSION.exec(name)?.[1];
      const over = session_id !== undefined && !live.has(session_id);
      if (over || name.endsWith('.tmp')) await rm(join(this.#dir, name), { recursive: true, force: true });
    }
  }

  /** The whole file or nothing, with the mode that it says, whatever the umask. */
  async #write(path: string, text: string, mode: number, owner: RunAs | null = null): Promise<void> {
    const temporary = join(this.#dir, `${randomBytes(6).toString('hex')}.tmp`);
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(text);
      await file.chmod(mode);
      if (owner) await file.chown(owner.uid, owner.gid);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  }
}
