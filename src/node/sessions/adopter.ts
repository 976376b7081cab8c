/**
 * Finds the sessions of earlier service processes on disk. A session whose files cannot be read, because of a disk error
 * or after a downgrade for example, is not missing: its id stays known, and it is read again until that succeeds.
 */
import { join } from 'node:path';
import { nextTurn } from '../../base/async.ts';
import { limits } from '../limits.ts';
import { LocalSession, type SessionHost } from './session.ts';
import { SessionFiles } from './session-files.ts';

export interface AdopterOptions {
  /** The folder of all session directories. */
  root: string;
  /** Receives the sessions. */
  sessions: Map<string, LocalSession>;
  host: SessionHost;
  watches: boolean;
  /** Interval at which sessions that cannot be read are tried again. */
  retry_ms: number;
  /** Called with a session that can be read only now, before it records more facts. */
  onReadable(session: LocalSession): void;
}

export class Adopter {
  readonly #options: AdopterOptions;
  readonly #unreadable = new Set<string>();
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: AdopterOptions) {
    this.#options = options;
  }

  /** The ids of sessions that cannot be read at the moment. */
  get unreadable(): ReadonlySet<string> {
    return this.#unreadable;
  }

  /** Reads the sessions with these ids, and later those of them again that cannot be read. */
  async adopt(ids: Iterable<string>): Promise<void> {
    const left = [...ids];
    const readNext = async () => {
      for (let id = left.pop(); id; id = left.pop()) await this.#adoptOne(id);
    };
    await Promise.all(Array.from({ length: limits.adopt_parallel }, readNext));
    if (this.#unreadable.size === 0 || this.#closed) return;
    const again = () =>
      this.adopt(this.#unreadable).catch((error: unknown) =>
        this.#options.host.log.error({ error: String(error) }, 'cannot adopt a session'),
      );
    this.#retry = setTimeout(again, this.#options.retry_ms).unref();
  }

  /** Affects no session. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
  }

  async #adoptOne(id: string): Promise<void> {
    await nextTurn();
    if (this.#closed) return;
    const { sessions, host, watches, onReadable } = this.#options;
    const was_unreadable = this.#unreadable.has(id);
    let session: LocalSession | null;
    try {
      session = this.#read(id);
    } catch (error) {
      this.#unreadable.add(id);
      const message = 'cannot read the files of a session; trying again';
      if (!was_unreadable) host.log.error({ session_id: id, error: String(error) }, message);
      return;
    }
    this.#unreadable.delete(id);
    if (!session) return;
    sessions.set(id, session);
    const opened = session.open(false, watches);
    try {
      if (was_unreadable) onReadable(session);
    } catch (error) {
      host.log.error({ session_id: id, error: String(error) }, 'cannot report a session');
    }
    await opened;
  }

  /** Null if there is no valid session. Throws if that is not known. */
  #read(id: string): LocalSession | null {
    const { root, host } = this.#options;
    const files = new SessionFiles(join(root, id));
    const launch = files.readLaunch();
    if (launch?.launch.session_id === id) return new LocalSession(id, files, launch, files.readFacts(), host);
    host.log.error({ session_id: id }, 'cannot read a session directory');
    return null;
  }
}
