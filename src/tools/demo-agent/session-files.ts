/**
 * The demo agent's sessions on disk: one append-only file of JSON lines for each. A line is either the session's
 * current state (the last one counts) or a message that can be replayed. Files are readable by this user only,
 * because the id of a session is enough to continue it.
 */
import { appendFile, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionUpdate } from '@agentclientprotocol/sdk';
import { z } from 'zod';
import { limits } from '../limits.ts';
import { modeIds, verbosities } from './offers.ts';

const stateSchema = z.object({
  mode: z.enum(modeIds),
  verbosity: z.enum(verbosities),
  /** Whether the user answered “always”. */
  always: z.boolean(),
  turns: z.int(),
  /** Steps of a team in which its question was asked. */
  asked: z.array(z.string()).default([]),
  title: z.string().nullable(),
});
export type SessionState = z.infer<typeof stateSchema>;

export type SessionLine = { state: SessionState } | { update: SessionUpdate };

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const SUFFIX = '.jsonl';

export class SessionFiles {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Creates a file, and removes the oldest ones if there are too many. */
  async create(id: string, state: SessionState): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    await this.append(id, { state });
    await this.#prune();
  }

  async append(id: string, line: SessionLine): Promise<void> {
    // The newline is written first, so that a line that a crash cut off does not corrupt the next one.
    await appendFile(this.#path(id), `\n${JSON.stringify(line)}`, { mode: 0o600 });
  }

  /** Null if there is no such session. */
  async read(id: string): Promise<{ state: SessionState; updates: SessionUpdate[] } | null> {
    if (!UUID.test(id)) return null;
    const text = await readFile(this.#path(id), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '';
      throw error;
    });
    const lines = text.split('\n').flatMap(parseLine);
    const states = lines.flatMap((line) => stateSchema.safeParse(line.state).data ?? []);
    const updates = lines.flatMap((line) => (line.update ? [line.update as SessionUpdate] : []));
    const state = states.at(-1);
    return state ? { state, updates } : null;
  }

  async #prune(): Promise<void> {
    const names = (await readdir(this.#dir)).filter((name) => UUID.test(name.replace(SUFFIX, '')));
    if (names.length <= limits.demo_sessions_kept) return;
    const files = await Promise.all(
      names.map(async (name) => {
        const path = join(this.#dir, name);
        const { mtimeMs = 0 } = await stat(path).catch(() => ({}) as { mtimeMs?: number });
        return { path, mtimeMs };
      }),
    );
    const oldest = files.sort((a, b) => a.mtimeMs - b.mtimeMs).slice(0, -limits.demo_sessions_kept);
    await Promise.all(oldest.map(({ path }) => rm(path, { force: true })));
  }

  #path(id: string): string {
    return join(this.#dir, `${id}${SUFFIX}`);
  }
}

function parseLine(line: string): { state?: unknown; update?: unknown }[] {
  try {
    return line === '' ? [] : [JSON.parse(line)];
  } catch {
    return [];
  }
}
