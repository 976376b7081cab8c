/** The worker of `worker-calls.test.ts`. */
import { workerData } from 'node:worker_threads';
import { serveCalls } from './worker-calls.ts';

const tasks = {
  greet: async (name: string) => `${(workerData as { greeting: string }).greeting}, ${name}`,
  fail: (message: string) => {
    throw new Error(message);
  },
  die: (_: null) => process.exit(1),
};
export type FixtureTasks = typeof tasks;

serveCalls(tasks);
