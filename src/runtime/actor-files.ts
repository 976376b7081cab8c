/**
 * What agents on this machine find the actor surface by: a folder with `actor.json` (where the nearest process listens),
 * `ca.pem` (whom to believe) and one token a session. Processes read the files at each call, so a service that is back
 * on another port, or with another certificate, is found by agents of before. A token is in no other file.
 */
import { randomBytes } from 'node:crypto';
import { open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
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

const TOKEN_FILE = /^([A-Za-z0-9][A-Za-z0-9_-]{0,63})\.token$/;

export class ActorFiles {
  readonly #dir: string;
  readonly #run_as: RunAs | null;
  #announced: ActorSurface | null = null;
  /** After the first announcement, or its failure. */
  readonly #begun = Promise.withResolvers<void>();

  private constructor(dir: string, run_as: RunAs | null) {
    this.#dir = dir;
    this.#run_as = run_as;
  }

  /** Throws an Error, in words for the operator, when the folder cannot be made. */
  static async open(options: AgentFolderOptions): Promise<ActorFiles> {
    const dir = await openAgentFolder('actor', options);
    // Tokens of a time without `run_as` are nobody's any more.
    if (options.run_as) await rm(join(options.data_dir, 'actor'), { recursive: true, force: true });
    return new ActorFiles(dir, options.run_as);
  }

  /** Says, also to agents that run already, where the surface is. */
  async announce(surface: ActorSurface): Promise<void> {
    const { ca, endpoint, server_name } = surface;
    try {
      if (ca !== null) await this.#write('ca.pem', ca, 0o644);
      const place = { endpoint, ...(server_name !== null && { server_name }) };
      await this.#write('actor.json', `${JSON.stringify(place)}\n`, 0o644);
      this.#announced = surface;
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
    await this.#write(`${session_id}.token`, `${token}\n`, 0o600, this.#run_as);
  }

  /** The variables of an agent; none where nothing could be announced. */
  environment(session_id: string): Record<string, string> {
    if (!this.#announced) return {};
    return {
      SVC_ACTOR_ENDPOINT: this.#announced.endpoint,
      SVC_ACTOR_TOKEN_FILE: join(this.#dir, `${session_id}.token`),
      ...(this.#announced.ca !== null && { SVC_ACTOR_CA_FILE: join(this.#dir, 'ca.pem') }),
    };
  }

  /** The session is over. */
  async drop(session_id: string): Promise<void> {
    await rm(join(this.#dir, `${session_id}.token`), { force: true });
  }

  /** Removes what sessions left behind that ended, or never began, while nobody looked. */
  async sweep(live: ReadonlySet<string>): Promise<void> {
    for (const name of await readdir(this.#dir)) {
      const session_id = TOKEN_FILE.exec(name)?.[1];
      const over = session_id !== undefined && !live.has(session_id);
      if (over || name.endsWith('.tmp')) await rm(join(this.#dir, name), { force: true });
    }
  }

  /** The whole file or nothing, with the mode that it says, whatever the umask. */
  async #write(name: string, text: string, mode: number, owner: RunAs | null = null): Promise<void> {
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
    await rename(temporary, join(this.#dir, name));
  }
}
