/** Runs workflows of steps that do nothing with DBOS. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { readArguments } from './read-arguments.ts';
import { type PeerArgs, type PeerRun, servePeer } from './serve-peer.ts';

interface Dbos {
  setConfig(config: { name: string; systemDatabaseUrl: string; logLevel: string }): void;
  launch(): Promise<void>;
  shutdown(): Promise<void>;
  registerWorkflow<Args extends unknown[]>(
    fn: (...args: Args) => Promise<void>,
    options: { name: string },
  ): (...args: Args) => Promise<void>;
  runStep(fn: () => Promise<void>, options: { name: string }): Promise<void>;
  startWorkflow(workflow: () => Promise<void>): () => Promise<{ getResult(): Promise<void> }>;
}

const { package: folder } = await readArguments<PeerArgs>();
const { DBOS } = createRequire(join(folder, 'package.json'))(folder) as { DBOS: Dbos };

const step = () => DBOS.runStep(async () => {}, { name: 'step' });
const chain = async (count: number) => {
  for (let i = 0; i < count; i++) await step();
};
/** The parallel steps start together; DBOS limits them by its connections. */
const fan = async (count: number) => {
  await step();
  await Promise.all(Array.from({ length: count - 2 }, step));
  await step();
};
const child = DBOS.registerWorkflow(step, { name: 'child' });
const children = async (count: number) => {
  await step();
  const started = await Promise.all(Array.from({ length: count - 2 }, () => DBOS.startWorkflow(child)()));
  await Promise.all(started.map((handle) => handle.getResult()));
  await step();
};
const workflows: Record<PeerRun['graph'], (count: number) => Promise<void>> = {
  chain: DBOS.registerWorkflow(chain, { name: 'chain' }),
  fan: DBOS.registerWorkflow(fan, { name: 'fan' }),
  children: DBOS.registerWorkflow(children, { name: 'children' }),
};

servePeer({
  async open(url) {
    DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, logLevel: 'error' });
    await DBOS.launch();
  },
  async run({ graph, count }) {
    // A method would be called as that of a configured class.
    const workflow = workflows[graph];
    await workflow(count);
  },
  close: () => DBOS.shutdown(),
});
