/**
 * A hostile agent against the repository of a worktree: forged records, links and FIFOs where git reads, and a `.git` that
 * changes while the service creates a worktree. In `npm run test:long`, each race gets more than twice as many attempts as it
 * once took to succeed.
 */
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { sleep } from '../../src/base/async.ts';
import type { Client } from '../../src/client/client.ts';
import type { Agent } from '../../src/features/agents/rules.ts';
import {
  AttackFixture,
  attacksByTurns,
  confinementMissing,
  confinements,
} from '../../src/testing/attack-fixture.ts';
import { run } from '../../src/testing/cli.ts';
import { raceAttempts } from '../../src/testing/long.ts';
import { git, makeRepository } from '../../src/testing/repository.ts';

const PRIVATE = 'a secret of bob, 77aa';
/** Linux's renameat2, which exchanges two paths atomically. */
const EXCHANGE = process.arch === 'arm64' ? 276 : 316;

const modes = confinements.filter(({ sandbox }) => sandbox);

describe.each(modes)('with $name', (mode) => {
  const missing = confinementMissing(mode);
  const attack = attacksByTurns(modes, mode);
  const note = missing === null ? '' : ` (needs ${missing})`;
  let fixture: AttackFixture;

  beforeAll(async () => {
    if (missing !== null) return;
    fixture = await AttackFixture.open(mode);
  });
  afterAll(() => fixture?.close());

  function repository(name: string): string {
    const repo = makeRepository(join(fixture.repos, name), { 'a.txt': 'one\n' });
    git(repo, 'config', 'extensions.worktreeConfig', 'true');
    fixture.own(repo);
    return repo;
  }

  /** In a folder that no agent sees, unless it works in a worktree of this repository. */
  function hiddenRepository(name: string): string {
    const repo = makeRepository(join(fixture.home_repos, name), { 'private.txt': PRIVATE });
    fixture.own(repo);
    return repo;
  }

  /** Starts an agent in its own worktree. */
  function inWorktree(client: Client, repo: string, command: string): Promise<Agent> {
    return client.call('createAgent', {
      body: {
        ...{ name: 'worker', node_id: fixture.node_id, command, start: true },
        ...{ worktree_mode: 'create_worktree', worktree_repo: repo },
      },
    });
  }

  /** Waits until an agent has printed a word. */
  async function untilPrinted(agent: Agent, text: string): Promise<void> {
    for (;;) {
      const output = await fixture.outputOf(agent.id);
      if (output.includes(text)) return;
      const { status } = await fixture.plane.get(agent.id);
      expect(status, `${output} (waiting for ${text})`).toBe('running');
      await sleep(20);
    }
  }

  attack(
    `a record that an agent forges in a repository's objects gives access to no folder${note}`,
    async () => {
      const repo = repository('objects');
      const bob = await inWorktree(fixture.bob, repo, `echo '${PRIVATE}' >notes.txt`);
      await fixture.plane.finished(bob.id);
      const forger = await fixture.folder('objects-forger');
      const made_up = `${repo}/.git/objects/w`;
      const racer = await inWorktree(
        fixture.alice,
        repo,
        `mkdir -p ${made_up}/worktrees/n ${made_up}/objects ${made_up}/foo &&
      echo ${forger}/.git >${made_up}/worktrees/n/gitdir && echo 'gitdir: ${made_up}/worktrees/n' >${forger}/.git &&
      ln -s ${relative(made_up, bob.workdir)} ${made_up}/foo.link && echo swapping &&
      exec perl -e '$p = shift; until (-e "$p.stop") {
        syscall(${EXCHANGE}, -100, $p, -100, "$p.link", 2); select(undef, undef, undef, 0.02) }' ${made_up}/foo`,
      );
      await untilPrinted(racer, 'swapping');
      const reader = await fixture.alice.call('createAgent', {
        body: {
          ...{ name: 'reader', node_id: fixture.node_id, workdir: forger },
          command: `cat ${made_up}/foo/notes.txt; touch ${made_up}/objects/planted; echo done`,
        },
      });
      for (let n = 0; n < raceAttempts(16); n++) {
        await fixture.alice.call('startAgent', { params: { agent_id: reader.id } });
        await fixture.plane.finished(reader.id);
      }
      await inWorktree(fixture.alice, repo, `touch ${made_up}/foo.stop`);
      await fixture.plane.finished(racer.id);
      const output = await fixture.outputOf(reader.id);
      expect(output).toContain('done');
      expect(output).not.toContain(PRIVATE);
      expect(existsSync(`${made_up}/objects/planted`)).toBe(false);
    },
  );

  attack(
    `a .git that changes while a worktree is created leads git to no other repository${note}`,
    async () => {
      const repo = repository('guarded');
      const guarded = `${repo}/.git`;
      const head = readFileSync(`${guarded}/HEAD`, 'utf8');
      const before = readdirSync(guarded);
      const folder = await fixture.folder('two-faced');
      const payload = join(fixture.work, 'payload.sh');
      writeFileSync(payload, `#!/bin/sh\ntouch ${fixture.work}/ran\n`);
      chmodSync(payload, 0o755);
      // One version names the protected repository, the other the agent's own, whose records lead to the protected one.
      const racer =
        await fixture.start(`cd ${folder} && mkdir -p g e/info e/worktrees && cp ${guarded}/HEAD g/HEAD &&
      echo ${guarded} >g/commondir && cp ${guarded}/HEAD e/HEAD &&
      printf '[core]\\n\\trepositoryformatversion = 1\\n\\tbare = false\\n\\tsparseCheckout = true\\n[extensions]\\n\\tworktreeConfig = true\\n' >e/config &&
      printf '[core]\\n\\tfsmonitor = ${payload}\\n' >e/config.worktree &&
      mkfifo e/info/sparse-checkout && ln -s ${guarded}/objects e/objects && ln -s ${guarded}/refs e/refs &&
      echo 'gitdir: ${folder}/g' >.git && echo 'gitdir: ${folder}/e' >.git.other &&
      exec perl -e 'use Fcntl; use Time::HiRes qw(time); $| = 1; print "swapping\\n";
        my ($folder, $guarded) = @ARGV; my $next = time() + 0.11;
        until (-e "$folder/stop") {
          if (time() > $next) {
            my ($one, $other) = ("$folder/.git", "$folder/.git.other");
            syscall(${EXCHANGE}, -100, $one, -100, $other, 2); $next = time() + 0.11;
          }
          for my $file (glob("$folder/e/worktrees/planted*/commondir")) {
            my ($record) = $file =~ m{^(.*)/commondir$}; next if -l $record;
            sysopen(my $waits, "$folder/e/info/sparse-checkout", O_WRONLY | O_NONBLOCK) or next;
            my $kept = "$folder/kept" . time();
            rename($record, $kept); symlink($guarded, $record); close $waits;
            my $end = time() + 0.0015; 1 while time() < $end;
            unlink($record); rename($kept, $record);
          }
          # Git waits until the FIFO has a writer, so a pause misses nothing.
          select(undef, undef, undef, 0.001);
        }' ${folder} ${guarded}`);
      await untilPrinted(racer, 'swapping');
      for (let n = 0; n < raceAttempts(12); n++) {
        const made = fixture.alice.call('createAgent', {
          body: {
            ...{
              name: 'w',
              node_id: fixture.node_id,
              worktree_mode: 'create_worktree',
              worktree_repo: folder,
            },
            ...{ workdir: join(fixture.work, `try-${n}/planted`), command: 'true' },
          },
        });
        await made.catch(() => null);
      }
      writeFileSync(`${folder}/stop`, '');
      await fixture.plane.finished(racer.id);
      const added = readdirSync(guarded).filter((name) => !before.includes(name));
      expect(added.filter((name) => !['worktrees', 'logs', 'packed-refs'].includes(name))).toEqual([]);
      expect(readFileSync(`${guarded}/HEAD`, 'utf8')).toBe(head);
      git(repo, '-c', 'safe.directory=*', 'status', '--short');
      expect(existsSync(join(fixture.work, 'ran'))).toBe(false);
    },
  );

  attack(`a FIFO in an agent's record does not block others in the repository${note}`, async () => {
    const repo = repository('fifo');
    const command =
      'record=$(git rev-parse --git-dir) && rm "$record/HEAD" && mkfifo "$record/HEAD" "$record/locked"';
    const blocker = await inWorktree(fixture.alice, repo, command);
    expect(await fixture.plane.finished(blocker.id)).toMatchObject({ exit_code: 0 });
    const bob = await inWorktree(fixture.bob, repo, 'git log --oneline');
    expect(await fixture.plane.finished(bob.id)).toMatchObject({ exit_code: 0 });
  });

  attack(
    `FIFOs among references, objects and an agent's own record delay no other agent${note}`,
    async () => {
      const repo = repository('fifos');
      const places = [
        'refs/heads/x',
        'refs/tags/x',
        'objects/info/alternates',
        'objects/pack/multi-pack-index',
      ];
      const blocker = await inWorktree(
        fixture.alice,
        repo,
        `record=$(git rev-parse --absolute-git-dir) && cd ${repo}/.git && mkdir -p "$record/rebase-merge" objects/info &&
      rm -f ${places.join(' ')} && mkfifo ${places.join(' ')} "$record/rebase-merge/update-refs"`,
      );
      expect(await fixture.plane.finished(blocker.id), await fixture.outputOf(blocker.id)).toMatchObject({
        exit_code: 0,
      });
      const bob = await inWorktree(fixture.bob, repo, 'git log --oneline --all');
      expect(await fixture.plane.finished(bob.id)).toMatchObject({ exit_code: 0 });
      const query = { delete_worktree: true };
      await fixture.bob.call('deleteAgent', { params: { agent_id: bob.id }, query });
      expect(existsSync(bob.workdir)).toBe(false);
    },
  );

  attack(`an agent that locks its whole repository delays no other agent${note}`, async () => {
    const repo = repository('locked');
    const holder = await inWorktree(
      fixture.alice,
      repo,
      `cd ${repo}/.git && exec perl -e 'use Fcntl ":flock"; my @held;
        for (".", ".svc", glob("*"), glob(".svc/*")) {
          open(my $one, "<", $_) or next; flock($one, LOCK_EX | LOCK_NB); push @held, $one;
        }
        $| = 1; print "locked\n"; sleep 600'`,
    );
    await untilPrinted(holder, 'locked');
    const bob = await inWorktree(fixture.bob, repo, 'git log --oneline');
    expect(await fixture.plane.finished(bob.id)).toMatchObject({ exit_code: 0 });
    await fixture.alice.call('stopAgent', { params: { agent_id: holder.id } });
  });

  attack(`a forged commit graph hides no change${note}`, async () => {
    const repo = repository('graph');
    const worker = await inWorktree(
      fixture.alice,
      repo,
      `echo hidden >a.txt && git add a.txt && new=$(git write-tree) && old=$(git rev-parse HEAD^{tree}) &&
      git commit-graph write --reachable && graph=$(git rev-parse --git-common-dir)/objects/info/commit-graph && chmod u+w $graph &&
      perl -0777 -i -pe 'BEGIN { $old = pack "H*", shift; $new = pack "H*", shift } s/\\Q$old\\E/$new/g' $old $new $graph &&
      [ -z "$(git diff --name-only HEAD)" ]`,
    );
    expect(await fixture.plane.finished(worker.id), await fixture.outputOf(worker.id)).toMatchObject({
      exit_code: 0,
    });
    const { files } = await fixture.alice.call('getChanges', { params: { agent_id: worker.id } });
    expect(files.map(({ path }) => path)).toEqual(['a.txt']);
  });

  attack(`an agent that replaces its repository cannot cause an empty list of changes${note}`, async () => {
    const worker = await inWorktree(
      fixture.alice,
      repository('swapped'),
      `echo hidden >a.txt && rm .git && git init --quiet && git add --all &&
      git -c user.name=x -c user.email=x@example.com commit --quiet --message x`,
    );
    expect(await fixture.plane.finished(worker.id), await fixture.outputOf(worker.id)).toMatchObject({
      exit_code: 0,
    });
    const shown = fixture.alice.call('getChanges', { params: { agent_id: worker.id } });
    await expect(shown).rejects.toMatchObject({ code: 'base_missing', kind: 'conflict' });
    const { url, token, folder: home } = fixture.plane;
    const env = { SVC_URL: url, SVC_TOKEN: token };
    const cli = await run(['agents', 'changes', worker.id], { home, env });
    expect(cli.code).not.toBe(0);
    expect(cli.stderr).toContain('does not have the commit that the worktree was made from');
  });

  attack(`a .git that names a repository outside of the sandbox shows nothing of it${note}`, async () => {
    const repo = hiddenRepository('named');
    const folder = await fixture.folder('named');
    await fixture.run(`echo 'gitdir: ${repo}/.git' >.git`, { workdir: folder });
    const agent = await fixture.start('true', { workdir: folder });
    await fixture.plane.finished(agent.id);
    const changes = fixture.alice.call('getChanges', { params: { agent_id: agent.id } });
    expect(JSON.stringify(await changes.catch(String))).not.toContain('private.txt');
    const change = fixture.alice.call('getChange', {
      params: { agent_id: agent.id, path: 'private.txt' },
    });
    expect(JSON.stringify(await change.catch(String))).not.toContain(PRIVATE);
  });

  attack(`a filter that runs in a folder worker reads no other repository${note}`, async () => {
    const repo = hiddenRepository('others');
    const folder = await fixture.folder('filtering');
    const payload = `#!/bin/sh\n{ echo ran; cat ${repo}/private.txt; } >${folder}/fifo 2>&1\ncat\n`;
    writeFileSync(join(folder, 'payload.sh'), payload, { mode: 0o755 });
    // Git checks the configuration for filters before it runs, and the agent changes it in between.
    const agent = await fixture.start(
      `git init --quiet && git config user.name x && git config user.email x@example.com && mkfifo fifo &&
      echo one >a.txt && git add a.txt && git commit --quiet --message x && echo '* filter=x' >.gitattributes && echo two >a.txt &&
      cp .git/config armed && git config --file armed filter.x.clean ${folder}/payload.sh &&
      exec perl -e 'use Fcntl; $| = 1; sysopen(my $fifo, "fifo", O_RDWR | O_NONBLOCK); print "swapping\n";
        until (-e "stop") {
          syscall(${EXCHANGE}, -100, my $one = ".git/config", -100, my $other = "armed", 2);
          print $text if sysread($fifo, $text, 4096); select(undef, undef, undef, 0.003 + rand(0.01));
        }'`,
      { workdir: folder },
    );
    await untilPrinted(agent, 'swapping');
    let output = '';
    for (let n = 0; n < raceAttempts(120) && output.split('ran\n').length < 4; n++) {
      await fixture.alice.call('getChanges', { params: { agent_id: agent.id } }).catch(() => null);
      await fixture.alice.call('listRepositories', { params: { node_id: fixture.node_id } });
      output = await fixture.outputOf(agent.id);
    }
    writeFileSync(join(folder, 'stop'), '');
    await fixture.plane.finished(agent.id);
    expect(await fixture.outputOf(agent.id)).not.toContain(PRIVATE);
  });

  attack(`repositories that the sandbox hides are listed, and agents work in them${note}`, async () => {
    const repo = hiddenRepository('usable');
    const { repositories } = await fixture.bob.call('listRepositories', {
      params: { node_id: fixture.node_id },
    });
    expect(repositories).toContainEqual(
      expect.objectContaining({ path: repo, branch: 'main', dirty: false }),
    );
    const bob = await inWorktree(fixture.bob, repo, 'git log --oneline && echo two >private.txt');
    expect(await fixture.plane.finished(bob.id)).toMatchObject({ exit_code: 0 });
    const { files } = await fixture.bob.call('getChanges', { params: { agent_id: bob.id } });
    expect(files.map(({ path }) => path)).toEqual(['private.txt']);
  });

  attack(`marks in the index of a worktree hide no change${note}`, async () => {
    const repo = repository('marks');
    const worker = await inWorktree(
      fixture.alice,
      repo,
      `git update-index --assume-unchanged a.txt && echo hidden >a.txt && [ -z "$(git status --porcelain)" ]`,
    );
    expect(await fixture.plane.finished(worker.id)).toMatchObject({ exit_code: 0 });
    const { files } = await fixture.alice.call('getChanges', { params: { agent_id: worker.id } });
    expect(files.map(({ path }) => path)).toEqual(['a.txt']);
  });
});
