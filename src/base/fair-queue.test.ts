import { expect, test } from 'vitest';
import { FairQueue, type FairQueueLimits } from './fair-queue.ts';

const many: FairQueueLimits = {
  ...{ running: 4, running_per_owner: 4, running_per_resource: 4 },
  ...{ waiting: 100, waiting_per_owner: 100, waiting_per_resource: 100 },
};

/** Named tasks that run until the test ends them. */
class Work {
  readonly running: string[] = [];
  readonly begun: string[] = [];
  readonly #ends = new Map<string, () => void>();
  readonly #queue: FairQueue;

  constructor(bounds: Partial<FairQueueLimits>) {
    this.#queue = new FairQueue({ ...many, ...bounds }, () => new Error('full'));
  }

  ask(owner: string, resource: string, name = `${owner} ${resource}`): Promise<string> {
    return this.#queue.run({ owner, resource }, async () => {
      this.running.push(name);
      this.begun.push(name);
      await new Promise<void>((resolve) => this.#ends.set(name, resolve));
      this.running.splice(this.running.indexOf(name), 1);
      return name;
    });
  }

  async end(name: string): Promise<void> {
    this.#ends.get(name)!();
    await settled();
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('slow tasks of one owner do not block other owners', async () => {
  const work = new Work({ running: 4, running_per_owner: 2 });
  for (let n = 0; n < 20; n++) void work.ask('alice', `folder ${n}`);
  await settled();
  expect(work.running).toEqual(['alice folder 0', 'alice folder 1']);
  void work.ask('bob', 'b');
  await settled();
  expect(work.running).toContain('bob b');
});

test('slow tasks of one resource do not block other resources of the same owner', async () => {
  const work = new Work({ running: 4, running_per_resource: 1 });
  for (let n = 0; n < 20; n++) void work.ask('alice', 'slow', `slow ${n}`);
  void work.ask('alice', 'other');
  await settled();
  expect(work.running).toEqual(['slow 0', 'alice other']);
  await work.end('slow 0');
  expect(work.running).toEqual(['alice other', 'slow 1']);
});

test('a free turn goes to the owner with the fewest tasks, then to the one that has waited longest', async () => {
  const work = new Work({ running: 1 });
  void work.ask('alice', 'a', 'a1');
  for (const name of ['a2', 'a3', 'a4']) void work.ask('alice', 'a', name);
  for (const name of ['c1', 'c2']) void work.ask('alice', 'c', name);
  for (const name of ['b1', 'b2']) void work.ask('bob', 'b', name);
  await settled();
  for (let n = 0; n < 7; n++) await work.end(work.running[0]!);
  expect(work.begun).toEqual(['a1', 'b1', 'c1', 'b2', 'a2', 'c2', 'a3', 'a4']);
});

test('rejects tasks beyond the waiting limits of a resource, of an owner and in total', async () => {
  const work = new Work({ running: 1, waiting: 4, waiting_per_owner: 3, waiting_per_resource: 2 });
  for (const name of ['1', '2', '3']) void work.ask('alice', 'a', name);
  await expect(work.ask('alice', 'a', '4')).rejects.toThrow('full');
  void work.ask('alice', 'other', '5');
  await expect(work.ask('alice', 'third', '6')).rejects.toThrow('full');
  void work.ask('bob', 'b', '7');
  await expect(work.ask('carol', 'c', '8')).rejects.toThrow('full');
  await work.end('1');
  void work.ask('carol', 'c', '9');
  while (work.running[0]) await work.end(work.running[0]);
  expect(work.begun.sort()).toEqual(['1', '2', '3', '5', '7', '9']);
});

test('a task whose signal aborts before its turn is skipped, and frees its place', async () => {
  const queue = new FairQueue({ ...many, running: 1, waiting_per_owner: 1 }, () => new Error('full'));
  const turn = { owner: 'alice', resource: 'a' };
  const begun: string[] = [];
  let end = () => {};
  const first = queue.run(turn, () => new Promise<void>((resolve) => (end = resolve)));
  const leave = new AbortController();
  const skipped = queue.run(turn, async () => begun.push('skipped'), leave.signal);
  leave.abort(new Error('left'));
  await expect(skipped).rejects.toThrow('left');
  await expect(queue.run(turn, async () => begun.push('late'), leave.signal)).rejects.toThrow('left');
  const next = queue.run(turn, async () => begun.push('next'), new AbortController().signal);
  end();
  await Promise.all([first, next]);
  expect(begun).toEqual(['next']);
});

test('a failing task frees its turn and passes on its error', async () => {
  const queue = new FairQueue({ ...many, running: 1 }, () => new Error('full'));
  const turn = { owner: 'alice', resource: 'a' };
  const failed = queue.run(turn, () => Promise.reject(new Error('broken')));
  const next = queue.run(turn, async () => 'done');
  await expect(failed).rejects.toThrow('broken');
  expect(await next).toBe('done');
});
