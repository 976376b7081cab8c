/**
 * A user against the worktrees of another: taking them over, emptying or filling them with a request for the same path,
 * forging records of git, and entering them with an agent that had the path before.
 */
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sleep } from '../../src/base/async.ts';
import { idFrom } from '../../src/base/ids.ts';
import type { Client } from '../../src/client/client.ts';
import type { Agent } from '../../src/features/agents/rules.ts';
import {
  AttackFixture,
  attacksByTurns,
  confinementMissing,
  confinements,
} from '../../src/testing/attack-fixture.ts';
import { raceAttempts } from '../../src/testing/long.ts';
import { makeRepository } from '../../src/testing/repository.ts';

const PRECIOUS = 'work of bob, 31bd\n';
const NOTE = `printf '${PRECIOUS.trim()}\\n' >notes.txt`;

const modes = confinements.filter(({ sandbox }) => sandbox);

describe.each(modes)('with $name', (mode) => {
  const missing = confinementMissing(mode);
  const attack = attacksByTurns(modes, mode);
  const note = missing === null ? '' : ` (needs ${missing})`;
  let fixture: AttackFixture;
  let trees: string;

  beforeAll(async () => {
    if (missing !== null) return;
    fixture = await AttackFixture.open(mode);
    trees = join(fixture.repos, '../trees');
  });
  afterAll(() => fixture?.close());

  function repository(name: string): string {
    const repo = makeRepository(join(fixture.repos, name), { 'planted.txt': 'by alice\n' });
    fixture.own(repo);
    return repo;
  }

  /** Creates an agent in its own worktree, and waits for its end. */
  async function made(client: Client, command: string, more: Record<string, unknown> = {}): Promise<Agent> {
    const agent = await createAgent(client, { command, start: true, ...more });
    await fixture.plane.finished(agent.id);
    return agent;
  }

  function createAgent(
    client: Client,
    more: Record<string, unknown>,
    idempotency_key?: string,
  ): Promise<Agent> {
    const common = { name: 'worker', node_id: fixture.node_id, command: 'true' };
    return client.call('createAgent', {
      body: { ...common, worktree_mode: 'create_worktree', ...more },
      ...(idempotency_key !== undefined && { idempotency_key }),
    });
  }

  const refusal = (work: Promise<unknown>) =>
    work.then(
      () => 'allowed',
      (error: { code?: string }) => error.code,
    );
  const remove = (client: Client, { id }: Agent, delete_worktree: boolean) =>
    client.call('deleteAgent', { params: { agent_id: id }, query: { delete_worktree } });

  attack(`a record that an agent forges empties no worktree${note}`, async () => {
    const shared = repository('wiped-shared');
    const other = repository('wiped-other');
    const victims = [
      await made(fixture.bob, NOTE, { worktree_repo: shared }),
      await made(fixture.bob, NOTE, { worktree_repo: other }),
      await made(fixture.bob, NOTE),
    ];
    for (const { workdir } of victims) {
      const before = readdirSync(workdir);
      const forge = `r=$(git rev-parse --absolute-git-dir) && echo '${workdir}/.git' >$r/gitdir && printf initializing >$r/locked`;
      const forger = await made(fixture.alice, forge, { worktree_repo: shared });
      expect(await fixture.plane.get(forger.id)).toMatchObject({ exit_code: 0 });
      const alices = { worktree_repo: shared, workdir };
      expect(await refusal(createAgent(fixture.alice, alices))).toBe('workdir_not_safe');
      expect(readdirSync(workdir)).toEqual(before);
      expect(readFileSync(join(workdir, 'notes.txt'), 'utf8')).toBe(PRECIOUS);
    }
  });

  attack(`a forged record takes over no worktree that a deleted agent left${note}`, async () => {
    const repo = repository('kept');
    const { id: user_id } = await fixture.alice.call('getMe');
    for (const [n, worktree_repo] of [repo, undefined].entries()) {
      const bob = await made(fixture.bob, NOTE, { worktree_repo, workdir: join(trees, `kept-${n}`) });
      await remove(fixture.bob, bob, false);
      const key = `a-key-of-alice-${n}`;
      const id = idFrom('agt', user_id, 'create', key);
      const branch = `svc/x-${id}`;
      const forge = `r=$(git rev-parse --absolute-git-dir) && git branch ${branch} HEAD &&
        echo '${bob.workdir}/.git' >$r/gitdir && echo 'ref: refs/heads/${branch}' >$r/HEAD`;
      const forger = await made(fixture.alice, forge, { worktree_repo: repo });
      expect(await fixture.plane.get(forger.id)).toMatchObject({ exit_code: 0 });
      const before = readdirSync(bob.workdir);
      const alices = { name: 'x', worktree_repo: repo, workdir: bob.workdir, start: true };
      expect(await refusal(createAgent(fixture.alice, alices, key))).toBe('workdir_not_empty');
      expect(readdirSync(bob.workdir)).toEqual(before);
      expect(readFileSync(join(bob.workdir, 'notes.txt'), 'utf8')).toBe(PRECIOUS);
    }
  });

  attack(`the id of an agent cannot be predicted${note}`, async () => {
    const { id: user_id } = await fixture.alice.call('getMe');
    const agent = await createAgent(fixture.alice, {}, 'a-key-to-guess');
    expect(agent.id).not.toBe(idFrom('agt', user_id, 'create', 'a-key-to-guess'));
    expect((await createAgent(fixture.alice, {}, 'a-key-to-guess')).id).toBe(agent.id);
  });

  attack(`nothing can be put into another user's empty worktree by any path${note}`, async () => {
    const worktree_repo = repository('planted');
    const workdir = join(trees, 'bobs-empty');
    const bob = await createAgent(fixture.bob, { workdir, command: 'sleep 600', start: true });
    const folder = await fixture.folder('links');
    symlinkSync(trees, join(folder, 'trees'));
    symlinkSync(workdir, join(folder, 'direct'));
    const names = [
      workdir,
      `${workdir}/`,
      `${trees}//bobs-empty/.`,
      `${trees}/x/../bobs-empty`,
      join(folder, 'trees/bobs-empty'),
      join(folder, 'direct'),
      join(workdir, 'below'),
    ];
    for (const name of names) {
      for (const more of [{ worktree_repo }, {}]) {
        expect([name, await refusal(createAgent(fixture.alice, { ...more, workdir: name }))]).toEqual([
          ...[name, 'workdir_not_safe'],
        ]);
      }
    }
    expect(readdirSync(workdir)).toEqual([]);
    await fixture.bob.call('stopAgent', { params: { agent_id: bob.id }, body: { grace_seconds: 0 } });
  });

  attack(`of two users who request one path at once, only one gets it${note}`, async () => {
    const worktree_repo = repository('at-once');
    for (let n = 0; n < raceAttempts(8); n++) {
      const workdir = join(trees, `at-once-${n}`);
      const creations = [
        createAgent(fixture.bob, { workdir }),
        createAgent(fixture.alice, { workdir, worktree_repo }),
      ];
      const got = (await Promise.allSettled(creations)).map(({ status }) => status);
      expect([...got].sort()).toEqual(['fulfilled', 'rejected']);
      expect(existsSync(join(workdir, 'planted.txt'))).toBe(got[1] === 'fulfilled');
    }
  });

  attack(`unsaved work is kept even if another agent's record claims its worktree${note}`, async () => {
    const worktree_repo = repository('similar');
    const bob = await made(fixture.bob, NOTE, { worktree_repo, workdir: join(trees, 'similar') });
    const forge = `r=$(git rev-parse --absolute-git-dir) && echo $r && echo '${bob.workdir}/.git' >$r/gitdir && printf initializing >$r/locked`;
    const alices = { worktree_repo, workdir: join(trees, 'similar1') };
    const forger = await made(fixture.alice, forge, alices);
    expect(await fixture.outputOf(forger.id)).toMatch(/worktrees\/similar1\n$/);
    expect(await remove(fixture.bob, bob, false)).toMatchObject({ worktree_kept: { workdir: bob.workdir } });
    expect(readFileSync(join(bob.workdir, 'notes.txt'), 'utf8')).toBe(PRECIOUS);
  });

  attack(
    `an agent that was given a path cannot enter a worktree that is created there later${note}`,
    async () => {
      const workdir = join(trees, 'feature');
      const first = await createAgent(fixture.alice, { workdir });
      const squatter = await fixture.alice.call('createAgent', {
        body: {
          ...{ name: 'squatter', node_id: fixture.node_id, workdir, restart_policy: 'on_failure' },
          command: 'cat notes.txt; echo planted >planted; exit 1',
        },
      });
      await remove(fixture.alice, first, true);
      const bob = await made(fixture.bob, NOTE, { workdir });
      expect(bob.workdir).toBe(workdir);

      const params = { agent_id: squatter.id };
      for (const operation of ['startAgent', 'restartAgent'] as const) {
        await fixture.alice.call(operation, { params });
        expect(await fixture.plane.finished(squatter.id)).toMatchObject({
          ...{ status: 'failed', reason: 'workdir_refused' },
        });
      }
      expect(await refusal(fixture.alice.call('getChanges', { params }))).toBe('workdir_not_safe');
      expect(
        await refusal(fixture.alice.call('getChange', { params: { ...params, path: 'notes.txt' } })),
      ).toBe('workdir_not_safe');
      expect(await refusal(fixture.alice.call('findFiles', { params, query: { q: 'notes' } }))).toBe(
        'workdir_not_safe',
      );
      const patch = await fetch(`${fixture.plane.url}/api/agents/${squatter.id}/changes`, {
        headers: { authorization: `Bearer ${fixture.plane.token}`, accept: 'text/x-diff' },
      });
      expect(patch.status).toBe(400);
      expect(await fixture.outputOf(squatter.id)).not.toContain('31bd');
      expect(readdirSync(workdir)).toEqual(['notes.txt']);
    },
  );

  attack(`no worktree is created around a running agent of another user${note}`, async () => {
    const workdir = join(trees, 'occupied');
    const first = await made(fixture.alice, 'touch keep', { workdir });
    const lodger = await fixture.alice.call('createAgent', {
      body: {
        ...{ name: 'lodger', node_id: fixture.node_id, workdir, start: true },
        command: 'rm keep; echo gone; sleep 600',
      },
    });
    await remove(fixture.alice, first, false);
    await expect.poll(() => fixture.outputOf(lodger.id), { timeout: 20_000 }).toContain('gone');
    expect(await refusal(createAgent(fixture.bob, { workdir }))).toBe('workdir_not_safe');
    await fixture.alice.call('stopAgent', { params: { agent_id: lodger.id }, body: { grace_seconds: 0 } });
    expect(await refusal(createAgent(fixture.bob, { workdir }))).toBe('allowed');
  });

  attack(`queued deletions remove nothing from the next owner of the path${note}`, async () => {
    const worktree_repo = repository('deleted');
    const workdir = join(trees, 'deleted');
    const first = await made(fixture.alice, 'true', { worktree_repo, workdir });
    let waiting = 16;
    // On a slow machine, a node may not answer in time: then nothing is deleted.
    const deletion = async () => {
      let answer: string | undefined;
      do answer = await refusal(remove(fixture.alice, first, true));
      while (answer === 'node_unreachable');
      waiting--;
      return answer;
    };
    const deletions = Array.from({ length: waiting }, deletion);
    let bobs_result: string | undefined;
    while (bobs_result !== 'allowed') {
      // Once no deletion waits, nothing keeps the next owner from the path.
      const is_last = waiting === 0;
      bobs_result = await refusal(made(fixture.bob, NOTE, { workdir }));
      if (is_last) break;
    }
    const answers = await Promise.all(deletions);
    expect({ theirs: bobs_result, answers: answers.toSorted() }).toMatchObject({ theirs: 'allowed' });
    expect(answers.filter((answer) => answer === 'allowed')).toHaveLength(1);
    expect(readFileSync(join(workdir, 'notes.txt'), 'utf8')).toBe(PRECIOUS);
  });

  attack(`a process that a deleted agent left cannot read later files in its folder${note}`, async () => {
    const workdir = join(trees, 'left');
    const until = (file: string) =>
      `for i in $(seq 400); do [ -e ${fixture.work}/${file} ] && break; sleep 0.05; done`;
    const loop = `rm -f keep; echo >${fixture.work}/left.empty; for i in $(seq 100); do cat notes.txt >>${fixture.work}/left.loot && exit; sleep 0.05; done`;
    const left = `touch keep; (${until('left.go')}; ${loop}) >/dev/null 2>&1 </dev/null &`;
    const first = await made(fixture.alice, left, { workdir, on_exit: 'keep' });
    await remove(fixture.alice, first, false);
    writeFileSync(join(fixture.work, 'left.go'), '');
    await expect.poll(() => existsSync(join(fixture.work, 'left.empty')), { timeout: 20_000 }).toBe(true);
    const bobs_result = await refusal(made(fixture.bob, `${NOTE}; sleep 1`, { workdir }));
    if (bobs_result === 'allowed') expect(readdirSync(workdir)).toEqual(['notes.txt']);
    expect(
      existsSync(join(fixture.work, 'left.loot'))
        ? readFileSync(join(fixture.work, 'left.loot'), 'utf8')
        : '',
    ).toBe('');
  });

  if (!mode.remote) {
    test.skipIf(missing !== null)(
      `an agent from a restored database does not get another's worktree${note}`,
      async () => {
        const workdir = join(trees, 'restored');
        const first = await createAgent(fixture.alice, { command: 'cat notes.txt; touch planted', workdir });
        const file = join(fixture.repos, '../backup.tar');
        expect((await fixture.plane.cli(['backup', file])).code).toBe(0);
        await remove(fixture.alice, first, true);
        await made(fixture.bob, NOTE, { workdir });
        await fixture.plane.kill('SIGTERM');
        expect((await fixture.plane.cli(['restore', file])).code).toBe(0);
        await fixture.plane.start();
        await fixture.alice.call('startAgent', { params: { agent_id: first.id } }).catch(() => {});
        await fixture.plane.finished(first.id);
        expect(await fixture.outputOf(first.id)).not.toContain(PRECIOUS.trim());
        expect(readdirSync(workdir)).toEqual(['notes.txt']);
      },
    );
  }

  attack(`a queued read shows nothing of another user's worktree${note}`, async () => {
    const workdir = join(trees, 'late-view');
    const hogs: Agent[] = [];
    for (const n of [0, 1]) {
      const folder = await fixture.folder(`late-view-${n}`);
      execFileSync('sh', ['-c', 'git init -q . && mkfifo .gitignore'], { cwd: folder });
      fixture.own(folder);
      hogs.push(await fixture.start('true', { workdir: folder }));
    }
    const alice = await createAgent(fixture.alice, { workdir });
    const change = (agent_id: string, path: string) =>
      refusal(fixture.alice.call('getChange', { params: { agent_id, path } } as never));
    let held = 4;
    const holding = hogs.flatMap(({ id }) =>
      ['a', 'b'].map((path) => change(id, path).finally(() => held--)),
    );
    await expect.poll(() => gitsWaiting(fixture.work)).toBeGreaterThan(2);
    const params = { agent_id: alice.id };
    const late = [
      fixture.alice.call('getChange', { params: { ...params, path: 'notes.txt' } } as never),
      fixture.alice.call('findFiles', { params, query: { q: 'notes' } }),
    ].map((answer) => refusal(answer));
    await sleep(300);
    await remove(fixture.alice, alice, true);
    await made(fixture.bob, NOTE, { workdir });
    for (const { workdir: folder } of hogs) release(join(folder, '.gitignore'));
    expect(await Promise.all(late)).toEqual([
      expect.not.stringMatching('allowed'),
      expect.not.stringMatching('allowed'),
    ]);
    await Promise.all(holding);
    expect(held).toBe(0);
  });

  if (mode.remote) {
    test.skipIf(missing !== null)(
      `no agent gets the worktree root from the registry as its workdir${note}`,
      async () => {
        const root = join(trees, 'inner');
        const set = (default_worktree_root: string | null) =>
          fixture.plane.client.call('updateAgentNode', {
            params: { node_id: fixture.node_id },
            body: { default_worktree_root } as never,
          });
        await set(root);
        try {
          expect(await refusal(createAgent(fixture.alice, { workdir: root }))).toBe('workdir_not_safe');
        } finally {
          await set(null);
        }
      },
    );
  }

  attack(`a folder with contents in a safe path does not become a worktree${note}`, async () => {
    const worktree_repo = repository('safe-path');
    const workdir = join(await fixture.folder('safe-path'), 'theirs');
    mkdirSync(workdir);
    writeFileSync(join(workdir, 'notes.txt'), PRECIOUS);
    fixture.own(workdir);
    const forge = `r=$(git rev-parse --absolute-git-dir) && echo '${workdir}/.git' >$r/gitdir && printf initializing >$r/locked`;
    await made(fixture.alice, forge, { worktree_repo });
    expect(await refusal(createAgent(fixture.alice, { worktree_repo, workdir }))).toBe('workdir_not_empty');
    expect(readFileSync(join(workdir, 'notes.txt'), 'utf8')).toBe(PRECIOUS);
  });
});

/** The number of git processes that have a folder of Alice's slow agents open. */
function gitsWaiting(work: string): number {
  const isWaiting = (pid: string) => {
    try {
      const folder = readlinkSync(`/proc/${pid}/cwd`);
      const name = readFileSync(`/proc/${pid}/comm`, 'utf8');
      return name === 'git\n' && folder.startsWith(`${work}/late-view-`);
    } catch {
      // It has ended.
      return false;
    }
  };
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isWaiting(name)).length;
}

/** Unblocks everything that waits at a FIFO, and removes it. */
function release(fifo: string): void {
  const writer = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
  rmSync(fifo);
  closeSync(writer);
}
