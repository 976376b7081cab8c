/**
 * Runs jobs that do nothing with pg-boss. Its `work` waits for its polling interval after each job, so this fetches and
 * completes them with the functions that pg-boss has for such loops, without a pause.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { readArguments } from './read-arguments.ts';
import { type Peer, type PeerArgs, type PeerRun, servePeer } from './serve-peer.ts';

interface Job {
  id: string;
}

interface PgBoss {
  on(event: 'error', listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: { graceful: boolean }): Promise<void>;
  createQueue(name: string): Promise<void>;
  send(name: string): Promise<string | null>;
  insert(name: string, jobs: readonly object[]): Promise<unknown>;
  fetch(name: string): Promise<Job[]>;
  complete(name: string, id: string): Promise<unknown>;
}

const QUEUE = 'bench';
const { package: folder } = await readArguments<PeerArgs>();
const module = pathToFileURL(join(folder, 'dist/index.js')).href;
const { PgBoss } = (await import(module)) as {
  PgBoss: new (options: { connectionString: string }) => PgBoss;
};
let boss: PgBoss;

servePeer({
  async open(url) {
    boss = new PgBoss({ connectionString: url });
    boss.on('error', (error) => {
      throw error;
    });
    await boss.start();
    await boss.createQueue(QUEUE);
  },
  run: (run) => (run.graph === 'chain' ? chain(run) : fan(run)),
  close: () => boss.stop({ graceful: false }),
} satisfies Peer);

/** Each job is sent when the one before it is complete. */
async function chain({ count }: PeerRun): Promise<void> {
  for (let i = 0; i < count; i++) {
    await boss.send(QUEUE);
    await take();
  }
}

async function fan({ count, at_once }: PeerRun): Promise<void> {
  await boss.send(QUEUE);
  await take();
  await boss.insert(
    QUEUE,
    Array.from({ length: count - 2 }, () => ({})),
  );
  let left = count - 2;
  const next = async () => {
    while (left-- > 0) await take();
  };
  await Promise.all(Array.from({ length: at_once }, next));
  await boss.send(QUEUE);
  await take();
}

async function take(): Promise<void> {
  const [job] = await boss.fetch(QUEUE);
  if (!job) throw new Error('pg-boss has no job');
  await boss.complete(QUEUE, job.id);
}
