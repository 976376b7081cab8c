/** The cost of confined agents: starting one, creating its worktree, and reading its changes. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '../../src/base/async.ts';
import type { Agent } from '../../src/features/agents/rules.ts';
import type { AttackFixture, Confined } from '../../src/testing/attack-fixture.ts';
import { git, makeRepository } from '../../src/testing/repository.ts';
import { type Figure, median, type Row } from '../figure.ts';
import { cpuSecondsWithChildren } from '../machine.ts';
import { openFixture, withFolder } from '../program.ts';

const FILES = 20_000;
const FILES_PER_FOLDER = 200;

const modes = [
  { name: 'without confinement', run_as: false, sandbox: false },
  { name: 'run_as', run_as: true, sandbox: false },
  { name: 'sandbox', run_as: false, sandbox: true },
  { name: 'run_as and sandbox', run_as: true, sandbox: true },
] as const;

/** The `svc` of another version for comparison; empty: none. */
const OTHER = process.env.SVC_BENCH_OTHER ?? '';

interface Measurement {
  start_ms: number[];
  start_cpu_ms: number[];
  worktree_ms: number[];
  first_changes_ms: number[];
  changes_ms: number[];
}

interface Side {
  name: string;
  fixture: AttackFixture;
  /** Repositories with a few files and with many. */
  small: string;
  large: string;
  taken: Measurement;
}

export const sandbox: Row = {
  name: 'sandbox',
  how:
    'Four services run at the same time: without confinement of agents, with `agents.run_as`, with ' +
    '`agents.sandbox`, and with both. With `SVC_BENCH_OTHER=<path of another svc>`, four of that version run ' +
    'too. They are measured in turns; the figures are medians; the limit is the service without confinement. ' +
    'A start is `POST …/start` of an agent (`sleep`), which answers once the process runs. Processor time is ' +
    'that of the service and its descendants, including ended ones, from before the start until 0.3 s after ' +
    'the stop, in steps of 10 ms. It does not include processes of the session that are no longer ' +
    'descendants. A worktree is created for an agent that is not started, from a repository with one file. ' +
    'Changes are those of one changed file in a worktree of 20,000 files: the first request for an agent, and ' +
    'later ones. The row needs root and bubblewrap.',
  run: async ({ quick }) => {
    const sides = await withFolder(async (folder) => {
      const large = await largeRepository(join(folder, 'large'));
      const all: Side[] = [];
      for (const { name, ...confined } of modes) {
        all.push(await open(name, confined, large));
        if (OTHER !== '') all.push(await open(`${name}, other version`, confined, large, OTHER));
      }
      return all;
    });
    const inTurns = async (rounds: number, measure: (side: Side) => Promise<void>) => {
      for (let round = 0; round < rounds; round++) for (const side of sides) await measure(side);
    };
    await inTurns(quick ? 3 : 7, startOne);
    await inTurns(quick ? 2 : 5, makeWorktree);
    await inTurns(quick ? 1 : 2, (side) => listChanges(side, quick ? 3 : 6));
    const [bare, ...confined] = sides;
    return quantities.flatMap(([field, what]) => {
      const unit = 'ms';
      const limit = median(bare!.taken[field]);
      return [
        { what: `${what}, ${bare!.name}`, unit, value: limit },
        ...confined.map(({ name, taken }) => ({
          ...{ what: `${what}, ${name}`, unit, value: median(taken[field]) },
          ...{ limit, limit_is: bare!.name },
        })),
      ] satisfies Figure[];
    });
  },
};

const quantities: [field: keyof Measurement, what: string][] = [
  ['start_ms', 'start of an agent'],
  ['start_cpu_ms', 'start and stop of an agent: processor time'],
  ['worktree_ms', 'creation of an agent with a worktree'],
  ['first_changes_ms', 'first changes of 20,000 files'],
  ['changes_ms', 'later changes of 20,000 files'],
];

async function open(
  name: string,
  confined: Omit<Confined, 'remote'>,
  many: string,
  program?: string,
): Promise<Side> {
  const fixture = await openFixture({ ...confined, remote: false }, program);
  const small = makeRepository(join(fixture.repos, 'small'), { 'a.txt': 'one\n' });
  const large = join(fixture.repos, 'large');
  git(fixture.repos, 'clone', '--quiet', '--no-hardlinks', '--no-checkout', many, large);
  for (const repo of [small, large]) fixture.own(repo);
  const taken = { start_ms: [], start_cpu_ms: [], worktree_ms: [], first_changes_ms: [], changes_ms: [] };
  return { name, fixture, small, large, taken };
}

async function largeRepository(path: string): Promise<string> {
  makeRepository(path);
  for (let from = 0; from < FILES; from += FILES_PER_FOLDER) {
    const folder = join(path, `folder-${from}`);
    await mkdir(folder);
    const names = Array.from({ length: FILES_PER_FOLDER }, (_, i) => `file-${from + i}.txt`);
    await Promise.all(names.map((file) => writeFile(join(folder, file), `the text of ${file}\n`)));
  }
  git(path, 'add', '--all');
  git(path, 'commit', '--quiet', '--message', 'first');
  // One pack is cloned faster than 20,000 objects.
  git(path, 'repack', '-q', '-a', '-d');
  return path;
}

async function startOne({ fixture, taken }: Side): Promise<void> {
  const { pid } = fixture.plane;
  const { id } = await fixture.plane.create({ argv: ['/bin/sleep', '100000'] });
  const params = { agent_id: id };
  const cpu_before_s = cpuSecondsWithChildren(pid);
  const ms = await timed(async () => {
    const { status } = await fixture.plane.client.call('startAgent', { params });
    if (status !== 'running') throw new Error(`the agent is ${status}`);
  });
  await fixture.plane.client.call('stopAgent', { params, body: { grace_seconds: 0 } });
  // The helpers of the session end a moment later.
  await sleep(300);
  taken.start_ms.push(ms);
  taken.start_cpu_ms.push((cpuSecondsWithChildren(pid) - cpu_before_s) * 1000);
}

async function makeWorktree(side: Side): Promise<void> {
  side.taken.worktree_ms.push(await timed(() => inWorktree(side, side.small)));
}

async function listChanges(side: Side, later: number): Promise<void> {
  const { id, workdir } = await inWorktree(side, side.large);
  await writeFile(join(workdir, 'folder-0/file-0.txt'), 'other text\n');
  const countHelpers = () =>
    timed(async () => {
      const changes = await side.fixture.plane.client.call('getChanges', { params: { agent_id: id } });
      if (changes.files.length !== 1) throw new Error(`${changes.files.length} files have changed`);
    });
  side.taken.first_changes_ms.push(await countHelpers());
  for (let n = 0; n < later; n++) side.taken.changes_ms.push(await countHelpers());
}

function inWorktree({ fixture }: Side, worktree_repo: string): Promise<Agent> {
  const body = { name: 'bench', command: 'true', worktree_mode: 'create_worktree', worktree_repo } as const;
  return fixture.plane.client.call('createAgent', { body });
}

async function timed(fn: () => Promise<unknown>): Promise<number> {
  const begun_ms = performance.now();
  await fn();
  return performance.now() - begun_ms;
}
