/**
 * The files with which agents on this machine find the actor API: a folder with `actor.json` (the address of the
 * service on this machine), `ca.pem` (the certificate authority to trust) and one token per session. Agents read the
 * files for each call, so they find a service that restarts on another port or with another certificate. Tokens are
 * stored nowhere else.
 */
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { KeyedQueue } from '../../base/async.ts';
import { type AgentFolderOptions, openAgentFolder } from '../confinement/agent-folder.ts';
import type { RunAs } from '../confinement/run-as.ts';

/** What an agent's process needs to know about the actor API. */
export interface ActorAddress {
  /** For example `https://127.0.0.1:8081`; `http:` if TLS is disabled. */
  endpoint: string;
  /** The name in the certificate; null if it is the endpoint's host. */
  server_name: string | null;
  /** PEM; null if TLS is disabled. */
  ca: string | null;
}

/** A session's token file, or its private folder. */
const SESSION_ENTRY = /^([A-Za-z0-9][A-Za-z0-9_-]{0,63})\.(?:token|own)$/;

export interface ActorFilesOptions extends AgentFolderOptions {
  /** Each session gets a private folder with everything it reads. In a sandbox, it sees only that folder. */
  private_folders?: boolean;
}

export class ActorFiles {
  readonly #dir: string;
  readonly #run_as: RunAs | null;
  readonly #private_folders: boolean;
  readonly #changes = new KeyedQueue();
  #announced: ActorAddress | null = null;
  /** Resolves after the first announcement, whether it succeeds or fails. */
  readonly #first_announcement = Promise.withResolvers<void>();

  private constructor(dir: string, { run_as, private_folders = false }: ActorFilesOptions) {
    this.#dir = dir;
    this.#run_as = run_as;
    this.#private_folders = private_folders;
  }

  /** Throws an Error with a message for the operator if the folder cannot be created. */
  static async open(options: ActorFilesOptions): Promise<ActorFiles> {
    const dir = await openAgentFolder('actor', options);
    // Tokens from before `run_as` was configured are no longer used.
    if (options.run_as) await rm(join(options.data_dir, 'actor'), { recursive: true, force: true });
    return new ActorFiles(dir, options);
  }

  /**
   * Publishes the address of the actor API to all agents, including those that are already running. If some of them
   * cannot get it, the others do, and this throws an AggregateError. Idempotent.
   */
  announce(address: ActorAddress): Promise<void> {
    return this.#oneAtATime(async () => {
      try {
        await this.#writeAddress(this.#dir, address);
        this.#announced = address;
        const own = (await readdir(this.#dir)).filter(
          (name) => SESSION_ENTRY.test(name) && name.endsWith('.own'),
        );
        const errors: unknown[] = [];
        for (const name of own) {
          await this.#writeAddress(join(this.#dir, name), address).catch((error: NodeJS.ErrnoException) => {
            // Otherwise, somebody deleted the folder.
            if (error.code !== 'ENOENT') errors.push(error);
          });
        }
        if (errors.length > 0)
          throw new AggregateError(errors, `cannot write the address for ${errors.length} sessions`);
      } finally {
        this.#first_announcement.resolve();
      }
    });
  }

  /**
   * Stores a session's token where only its agent can read it. Waits for the first announcement, because a session may
   * be started while the listener opens.
   */
  async storeToken(session_id: string, token: string): Promise<void> {
    await this.#first_announcement.promise;
    const path = this.#tokenPath(session_id);
    await this.#oneAtATime(async () => {
      if (this.#private_folders) {
        const own = dirname(path);
        await mkdir(own, { recursive: true });
        await chmod(own, this.#run_as ? 0o711 : 0o700);
        if (this.#announced) await this.#writeAddress(own, this.#announced);
      }
      await this.#write(path, `${token}\n`, 0o600, this.#run_as);
    });
  }

  /**
   * Announcements must not overlap with other changes: a folder would be deleted while they write to it, or get the
   * previous address after the new one.
   */
  #oneAtATime(change: () => Promise<void>): Promise<void> {
    return this.#changes.run('', change);
  }

  async #writeAddress(dir: string, { ca, endpoint, server_name }: ActorAddress): Promise<void> {
    if (ca !== null) await this.#write(join(dir, 'ca.pem'), ca, 0o644);
    const location = { endpoint, ...(server_name !== null && { server_name }) };
    await this.#write(join(dir, 'actor.json'), `${JSON.stringify(location)}\n`, 0o644);
  }

  #tokenPath(session_id: string): string {
    return join(
      this.#dir,
      this.#private_folders ? join(`${session_id}.own`, 'token') : `${session_id}.token`,
    );
  }

  /** The variables with which an agent finds the files; empty before the first announcement. */
  environment(session_id: string): Record<string, string> {
    if (!this.#announced) return {};
    const token = this.#tokenPath(session_id);
    return {
      SVC_ACTOR_ENDPOINT: this.#announced.endpoint,
      SVC_ACTOR_TOKEN_FILE: token,
      ...(this.#announced.ca !== null && { SVC_ACTOR_CA_FILE: join(dirname(token), 'ca.pem') }),
    };
  }

  /** Deletes the files of a session that has ended. Idempotent. */
  drop(session_id: string): Promise<void> {
    return this.#oneAtATime(async () => {
      for (const kind of ['token', 'own']) {
        await rm(join(this.#dir, `${session_id}.${kind}`), { recursive: true, force: true });
      }
    });
  }

  /** Deletes the files of sessions that ended, or were never started, while the service was not running. */
  async sweep(live: ReadonlySet<string>): Promise<void> {
    for (const name of await readdir(this.#dir)) {
      const session_id = SESSION_ENTRY.exec(name)?.[1];
      const over = session_id !== undefined && !live.has(session_id);
      if (over || name.endsWith('.tmp')) await rm(join(this.#dir, name), { recursive: true, force: true });
    }
  }

  /** Writes the file atomically, with exactly this mode regardless of the umask. */
  async #write(path: string, text: string, mode: number, owner: RunAs | null = null): Promise<void> {
    const temporary = join(this.#dir, `${randomBytes(6).toString('hex')}.tmp`);
    try {
      const file = await open(temporary, 'wx', 0o600);
      try {
        await file.writeFile(text);
        await file.chmod(mode);
        if (owner) await file.chown(owner.uid, owner.gid);
      } finally {
        await file.close();
      }
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }
}
