/** Agents that write numbered lines and keep a copy, and a check that no output was lost or duplicated. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { History } from './history.ts';
import type { TestPlane } from './plane.ts';

const program = fileURLToPath(new URL('../../test/agents/writer.mjs', import.meta.url));

/** Name, pause between lines in ms, maximum length of a line. */
export type WriterKind = readonly [name: string, pause_ms: string, size: string];

export const MIXED: readonly WriterKind[] = [
  ['slow', '20', '10'],
  ['steady', '5', '80'],
  ['quick', '1', '40'],
  ['long', '20', '2000'],
];

/** A random number generator with a seed (mulberry32): numbers from 0 (inclusive) to 1 (exclusive). */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface Writer {
  id: string;
  name: string;
  pid: number;
  history: History;
}

/** Where the writers run: `agent` creates one, `work` is their workdir. */
export interface WritersHome {
  work: string;
  agent(argv: string[]): Promise<{ id: string }>;
}

export function startWriters(
  plane: Pick<TestPlane, 'client'>,
  home: WritersHome,
  kinds = MIXED,
): Promise<Writer[]> {
  return Promise.all(
    kinds.map(async ([name, ...pace]) => {
      const { id } = await home.agent([process.execPath, program, name, ...pace]);
      return { id, name, pid: await pidOf(plane, id), history: new History(plane.client, id) };
    }),
  );
}

export async function pidOf(plane: Pick<TestPlane, 'client'>, agent_id: string): Promise<number> {
  const [session] = (await plane.client.call('listSessions', { params: { agent_id } })) as { pid: number }[];
  return session!.pid;
}

/** Ends the writers, and checks that every reader received exactly the bytes that they wrote, from the same processes. */
export async function expectNothingLost(
  plane: TestPlane,
  home: WritersHome,
  writers: Writer[],
): Promise<void> {
  await writeFile(join(home.work, 'stop'), '');
  for (const { id, name, pid, history } of writers) {
    const agent = await plane.finished(id);
    expect(agent).toMatchObject({ status: 'completed', exit_code: 0, session_count: 1, stale_since: null });
    expect(await pidOf(plane, id)).toBe(pid);
    await expect
      .poll(() => Number(history.events.at(-1)?.id ?? 0), { timeout: 60_000 })
      .toBeGreaterThanOrEqual(agent.last_seq);
    await history.close();
    expect(history.sequenceError()).toBeNull();
    for (const stream of ['stdout', 'stderr'] as const) {
      const written = await readFile(join(home.work, `${name}.${stream}`));
      expect(written.length).toBeGreaterThan(0);
      expect(written.equals(await plane.output(id, { stream }))).toBe(true);
      expect(written.equals(history.bytes(stream))).toBe(true);
    }
    const statuses = history.events
      .filter((frame) => frame.event === 'status')
      .map(({ data }) => data.status);
    expect(statuses).toEqual(['running', 'completed']);
  }
}
