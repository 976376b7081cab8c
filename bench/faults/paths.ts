/** Folders that lead outside the safe paths, and repositories that would run programs. */
import { existsSync, mkdirSync, rmdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Agent } from '../../src/features/agents/rules.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { makeRepository, makeTrap, poison } from '../../src/testing/repository.ts';
import { Child } from '../child.ts';
import type { SwapperArgs } from '../processes/swapper.ts';
import { forEachConcurrently, withProgram } from '../program.ts';
import { counts, type FaultRow, outcomeOf, Tally, upTo } from './row.ts';
import { runTests } from './tests.ts';

const AT_ONCE = 8;
const OUTSIDE = 'workdir path must be within allowed safe paths';

export const folders: FaultRow = {
  number: 43,
  fault:
    'workdirs that lead outside: dots, NUL, siblings, links, overlong names; and one that is constantly ' +
    'swapped for a link',
  expected: 'rejected, or inside',
  default_n: 1_000,
  run: (n) =>
    withProgram(async (plane) => {
      const tally = new Tally();
      await names(tally, plane);
      await swapped(tally, plane, n);
      return tally.outcome();
    }),
};

async function names(tally: Tally, plane: TestPlane): Promise<void> {
  const { folder, work, data_dir } = plane;
  const evil = join(folder, 'outside');
  mkdirSync(evil);
  mkdirSync(`${work}-evil`);
  symlinkSync(evil, join(work, 'link'));
  symlinkSync(join(folder, 'nowhere'), join(work, 'dangling'));
  symlinkSync(join(work, 'circle'), join(work, 'circle'));
  const requests = [
    ...['/', '/etc', evil, `${work}-evil`, data_dir, join(data_dir, 'sessions')],
    ...[`${work}/..`, `${work}/../outside`, `${work}/none/../../outside`, `${work}/./../outside`],
    ...[`${work}/link`, `${work}/link/x`, `${work}/link/..`, `${work}/dangling`, `${work}/circle`],
    ...[`${work}/\0`, `${work}\0/../outside`, `${work}/\n`, `${work}/\ud800`, `${work}/\u202e`],
    ...[`${work}/${'x'.repeat(5_000)}`, `${work}/${'x/'.repeat(3_000)}`, `/${'../'.repeat(1_000)}etc`],
    ...[
      'work',
      './work',
      '~',
      '$HOME',
      '',
      ' ',
      `${work.toUpperCase()}`,
      `//etc`,
      `${work}/%2e%2e`,
      `file://${work}`,
    ],
  ];
  const outcomes: string[] = [];
  for (const workdir of requests) {
    const outcome = await outcomeOf(plane.create({ workdir, command: 'true' }));
    outcomes.push(outcome);
    tally.case(outcome.startsWith('workdir'), `${JSON.stringify(workdir.slice(0, 60))}: ${outcome}`);
  }
  tally.check(outcomes.includes(OUTSIDE), 'no workdir was rejected as outside');
  tally.measure(`${requests.length} names: ${counts(outcomes)}`);
}

/** Starts agents in a folder that is replaced by a link again and again. Each reports its real location. */
async function swapped(tally: Tally, plane: TestPlane, n: number): Promise<void> {
  const path = join(plane.work, 'flip');
  const outside = join(plane.folder, 'target');
  mkdirSync(outside);
  const report_folder = join(plane.work, 'said');
  writeFileSync(report_folder, '');
  mkdirSync(path);
  const agents = await Promise.all(
    upTo(AT_ONCE).map(() =>
      plane.create({ workdir: path, command: `readlink /proc/self/cwd >>'${report_folder}'` }),
    ),
  );
  rmdirSync(path);
  const swapper = new Child('swapper', { path, outside } satisfies SwapperArgs);
  const ends: string[] = [];
  await forEachConcurrently(agents, AT_ONCE, async ({ id }) => {
    for (let i = 0; i < n / AT_ONCE; i++) ends.push(await launch(plane, id));
  });
  const { swaps } = await swapper.request<{ swaps: number }>({});
  await swapper.end();
  const where = (await readFile(report_folder, 'utf8')).split('\n').filter(Boolean);
  for (const one of where) {
    const inside = one === path || one === `${path} (deleted)`;
    tally.check(inside, `an agent ran in ${one.replace(plane.folder, '…')}`);
  }
  tally.n += ends.length;
  tally.check(where.length > 0, 'no agent ran at all');
  tally.check(
    ends.some((end) => end !== 'completed'),
    'nothing was rejected',
  );
  tally.measure(
    `swapped ${swaps} times during ${ends.length} starts: ${counts(ends)}; ran ${where.length} times, outside ${where.filter((one) => !one.startsWith(path)).length} times`,
  );
}

/** The result of a start: how the agent ended, or why it was not started. */
async function launch(plane: TestPlane, agent_id: string): Promise<string> {
  const begun = await outcomeOf(plane.client.call('startAgent', { params: { agent_id } }));
  if (begun !== 'ok') return begun;
  const { status, reason }: Agent = await plane.finished(agent_id);
  return reason ?? status;
}

export const repositories: FaultRow = {
  number: 44,
  fault:
    'git: references that are options, hooks, fsmonitor, filters, drivers, transports, submodules outside the ' +
    'repository',
  expected: 'nothing of a repository is executed, and nothing is written outside',
  default_n: 20,
  run: async (n) => {
    const tally = new Tally();
    await withProgram(async (plane) => {
      const canary = join(plane.folder, 'canary');
      const program = makeTrap(plane.folder, canary);
      const refs = [
        ...[
          `--upload-pack=${program}`,
          `--exec=${program}`,
          '-c',
          '--help',
          '--output=/tmp/x',
          `-c core.pager=${program}`,
        ],
        ...[
          '',
          'a\0b',
          'x'.repeat(5_000),
          'none',
          'HEAD:a.txt',
          `ext::${program}`,
          '$(id)',
          '`id`',
          ';id',
          '@{-1}',
        ],
      ];
      const repo = makeRepository(join(plane.work, 'repo'), { 'a.txt': 'one\n' });
      const create = (worktree_ref: string | undefined, name = 'evil') =>
        plane.client.call('createAgent', {
          body: {
            name,
            command: 'true',
            worktree_mode: 'create_worktree',
            worktree_repo: repo,
            ...(worktree_ref !== undefined && { worktree_ref }),
          },
        });
      for (const ref of refs) {
        const outcome = await outcomeOf(create(ref));
        tally.case(/^worktree_ref /.test(outcome), `${JSON.stringify(ref.slice(0, 40))}: ${outcome}`);
      }
      poison(repo, program);
      tally.check(existsSync(canary), 'the trap does not work');
      const before = await readFile(canary, 'utf8');
      for (const name of ['x', '-x', '--upload-pack=x', '../x', '$(id)', ...upTo(n).map((i) => `n${i}`)]) {
        const agent = await create(undefined, name);
        const params = { agent_id: agent.id };
        writeFileSync(join(agent.workdir, 'b.txt'), 'three\n');
        const changes = await plane.client.call('getChanges', { params });
        for (const { path } of changes.files)
          await plane.client.call('getChange', { params: { ...params, path } });
        await plane.client.call('deleteAgent', { params, query: { delete_worktree: true } });
        const inside = agent.workdir.startsWith(join(plane.data_dir, 'worktrees'));
        tally.case(inside, `a worktree is in ${agent.workdir}`);
      }
      const ran = (await readFile(canary, 'utf8')) !== before;
      tally.check(!ran, 'a program of the repository ran');
      tally.measure(
        `${refs.length} references rejected; ${n + 5} worktrees created, inspected and removed; canary ${ran ? 'triggered' : 'not triggered'}`,
      );
    });
    await runTests(tally, ['src/node/folders/worktrees.test.ts', 'src/node/folders/changes.test.ts'], {
      name_parts: ['never runs', 'runs nothing', 'does not fetch'],
    });
    return tally.outcome();
  },
};
