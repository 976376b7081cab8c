/**
 * A hostile agent, repository or user attacks the confinement of agents, in the real program and every confinement mode.
 * In `npm run test:long`, each race gets more than twice as many attempts as it once took to succeed.
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { chmod, chown, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sleep } from '../../src/base/async.ts';
import type { Agent } from '../../src/features/agents/rules.ts';
import {
  AttackFixture,
  attacksByTurns,
  type Confined,
  confinementMissing,
  confinements,
} from '../../src/testing/attack-fixture.ts';
import { raceAttempts } from '../../src/testing/long.ts';
import { git, makeRepository } from '../../src/testing/repository.ts';

const SECRET = 'a secret of the service, sesame';

/** Linux's renameat2, which exchanges two paths atomically. */
const EXCHANGE = `syscall(${process.arch === 'arm64' ? 276 : 316}, -100, $path, -100, "$path.link", 2) == 0`;

/** Keeps exchanging a folder with a link to `target`, until a file `<path>.stop` appears. */
const SWAP = `until (-e "$path.stop") { ${EXCHANGE}; select(undef, undef, undef, 0.003) }`;
/** Waits for a folder to appear, replaces it with a link to `target` a random moment later, and cleans up. */
const SWAP_NEW = `until (-e "$path.stop") {
  next unless -d $path;
  my $spins = int(rand(20000)); while ($spins > 0) { $spins-- }
  ${EXCHANGE} or next;
  select(undef, undef, undef, 0.005);
  unlink($path); rmdir("$path.link"); symlink($target, "$path.link");
}`;
const swapper = (script: string, path: string, target: string) => [
  'perl',
  '-e',
  `our ($path, $target) = @ARGV; symlink($target, "$path.link"); $| = 1; print "swapping\\n"; ${script}`,
  path,
  target,
];

const sandboxes = confinements.filter(({ sandbox }) => sandbox);

describe.each(confinements)('with $name', (mode) => {
  const missing = confinementMissing(mode);
  const attack = mode.sandbox ? attacksByTurns(sandboxes, mode) : test.skipIf(missing !== null);
  /** For attacks that only a sandbox prevents. */
  const sandboxed = (name: string, body: () => Promise<void>) => {
    if (mode.sandbox) attack(name, body);
  };
  const note = missing === null ? '' : ` (needs ${missing})`;
  let fixture: AttackFixture;

  beforeAll(async () => {
    if (missing !== null) return;
    fixture = await AttackFixture.open(mode);
    await writeFile(join(fixture.data_dir, 'hidden'), SECRET, { mode: 0o600 });
  });
  afterAll(() => fixture?.close());

  /** Runs a race: a hostile agent keeps replacing a path while somebody else does something. */
  async function race(
    script: string,
    path: string,
    target: string,
    tries: number,
    act: () => Promise<unknown>,
  ): Promise<void> {
    const racer = await fixture.start(swapper(script, path, target));
    while (!(await fixture.outputOf(racer.id)).includes('swapping')) await sleep(20);
    try {
      for (let n = 0; n < raceAttempts(tries); n++) await act().catch(() => {});
    } finally {
      await writeFile(`${path}.stop`, '');
      await fixture.plane.finished(racer.id);
    }
  }

  const create = (body: Record<string, unknown>) =>
    fixture.alice.call('createAgent', {
      body: { name: 'x', node_id: fixture.node_id, command: 'true', ...body } as never,
    });
  const remove = (agent: Agent) =>
    fixture.alice.call('deleteAgent', {
      params: { agent_id: agent.id },
      query: { force: true, delete_worktree: true },
    });

  attack(`the agent's variables reach no program that has more rights than the agent${note}`, async () => {
    const folder = await fixture.folder('loader');
    // The loader writes a file for every program that gets these variables, before the program does anything.
    const env = { LD_DEBUG: 'libs', LD_DEBUG_OUTPUT: join(folder, 'ld'), BASH_ENV: '/x', ENV: '/x' };
    await fixture.run(['/bin/sh', '-c', 'cat /dev/null'], { workdir: folder, env });
    const files = readdirSync(folder).map((name) => join(folder, name));
    const programs = files.map((path) => /initialize program: (\S+)/.exec(readFileSync(path, 'utf8'))?.[1]);
    expect(new Set(programs)).toEqual(new Set(['/bin/sh', 'cat']));
    if (fixture.user)
      expect(files.map((path) => statSync(path).uid)).toEqual(files.map(() => fixture.user!.uid));
  });

  attack(`creating a folder for an agent does not give it the files of others${note}`, async () => {
    const folder = await fixture.folder('owned');
    const victim = join(fixture.data_dir, 'hidden');
    const owner = statSync(victim).uid;
    const target = join(folder, 'x');
    await race(SWAP_NEW, target, victim, 40, async () => {
      await remove((await create({ worktree_mode: 'create_worktree', workdir: target })) as Agent);
    });
    expect(statSync(victim).uid).toBe(owner);
    expect(await readFile(victim, 'utf8')).toBe(SECRET);
  });

  attack(`filters that only a worktree's git finds cannot access protected files${note}`, async () => {
    const repo = makeRepository(join(fixture.work, 'conditional'), { 'a.txt': 'one\n' });
    await arm(repo, 'includeIf "gitdir:**/worktrees/**"', join(fixture.work, 'conditional.cfg'));
    await own(repo);
    const made = await create({ worktree_mode: 'create_worktree', worktree_repo: repo });
    await changesOf(made as Agent);
    await mustBeUntouched(repo);
  });

  attack(`a filter behind a long configuration cannot access protected files${note}`, async () => {
    const repo = makeRepository(join(fixture.work, 'long'), { 'a.txt': 'one\n' });
    const filler = Array.from({ length: 8_600 }, (_, n) => `\ta${'a'.repeat(1_000)}${n} = 1\n`).join('');
    await writeFile(join(repo, '.git/config'), `[filter "x"]\n${filler}`, { flag: 'a' });
    await arm(repo, 'include', join(fixture.work, 'long.cfg'));
    await writeFile(join(repo, 'a.txt'), 'two\n');
    await own(repo);
    const agent = (await create({ workdir: repo })) as Agent;
    await changesOf(agent);
    await mustBeUntouched(repo);
  });

  attack(`listing repositories shows no protected files and no worktrees${note}`, async () => {
    const repo = makeRepository(join(fixture.work, 'listed'), { 'a.txt': 'one\n' });
    await arm(repo, 'include', join(fixture.work, 'listed.cfg'));
    await writeFile(join(repo, 'a.txt'), 'two\n');
    await own(repo);
    const operators = makeRepository(join(fixture.repos, 'operators'), { 'a.txt': 'one\n' });
    fixture.own(operators);
    const theirs = (await create({ worktree_mode: 'create_worktree' })) as Agent;
    execFileSync('cp', ['-R', `${operators}/.`, theirs.workdir]);
    await own(theirs.workdir);
    const params = { node_id: fixture.node_id };
    const { repositories } = await fixture.bob.call('listRepositories', { params });
    const dirty = new Map(repositories.map((one) => [one.path, one.dirty]));
    expect(dirty.get(repo)).toBe(true);
    expect(dirty.get(operators)).toBe(false);
    expect(dirty.has(theirs.workdir)).toBe(false);
    await mustBeUntouched(repo);
    await remove(theirs);
  });

  attack(`a workdir that is replaced while the agent starts reveals no protected files${note}`, async () => {
    const folder = await fixture.folder('swapped');
    const path = join(folder, 'wd');
    await mkdir(path);
    await own(folder);
    const agent = (await create({
      workdir: path,
      command: `pwd; ls -a; cat hidden; echo x >planted`,
    })) as Agent;
    const outputs: string[] = [];
    await race(SWAP, path, fixture.data_dir, 32, async () => {
      await fixture.alice.call('startAgent', { params: { agent_id: agent.id } });
      await fixture.plane.finished(agent.id);
      outputs.push(await fixture.outputOf(agent.id));
    });
    expect(existsSync(join(fixture.data_dir, 'planted'))).toBe(false);
    expect(outputs.join('')).not.toMatch(/sesame|sessions|secret\.key/);
  });

  attack(
    `a folder that is replaced while its changes are read reveals no protected files${note}`,
    async () => {
      const repo = makeRepository(join(fixture.work, 'shown'), { 'a.txt': 'one\n' });
      await mkdir(join(repo, 'sub'));
      await writeFile(join(repo, 'sub/hidden'), 'new\n');
      await own(repo);
      const agent = (await create({ workdir: repo })) as Agent;
      let shown = '';
      await race(SWAP, join(repo, 'sub'), fixture.data_dir, 20, async () => {
        const params = { agent_id: agent.id };
        shown += JSON.stringify(await fixture.alice.call('getChanges', { params }));
        shown += JSON.stringify(
          await fixture.alice.call('getChange', { params: { ...params, path: 'sub/hidden' } }),
        );
      });
      expect(shown).not.toContain('sesame');
    },
  );

  attack(`removing a folder whose parent is replaced removes nothing else${note}`, async () => {
    const outside = join(fixture.data_dir, 'outside');
    await mkdir(join(outside, 'victim'), { recursive: true });
    await writeFile(join(outside, 'victim/canary'), SECRET);
    const parent = await fixture.folder('removed');
    await race(SWAP, parent, outside, 16, async () => {
      const agent = (await create({
        worktree_mode: 'create_worktree',
        workdir: join(parent, 'victim'),
      })) as Agent;
      await remove(agent);
    });
    expect(await readFile(join(outside, 'victim/canary'), 'utf8')).toBe(SECRET);
  });

  attack(`the agent cannot read credentials of the operator or the service${note}`, async () => {
    await mkdir(join(fixture.home, '.config/svc'), { recursive: true });
    const credentials = join(fixture.home, '.config/svc/credentials.json');
    await writeFile(credentials, SECRET, { mode: 0o600 });
    await writeFile(join(fixture.home, '.bash_history'), SECRET, { mode: 0o600 });
    const output = await fixture.run(
      `cat ${credentials} ${fixture.home}/.bash_history ${fixture.data_dir}/hidden; ls -aR ${fixture.home} ${fixture.data_dir}`,
    );
    expect(output).not.toContain('sesame');
    if (mode.sandbox) expect(output).not.toContain('.bash_history\n');
  });

  sandboxed(`the agent cannot leave anything in a repository that git runs for others${note}`, async () => {
    const repo = join(fixture.repos, 'guarded');
    makeRepository(repo, { 'a.txt': 'one\n' });
    await rm(join(repo, '.git/hooks'), { recursive: true });
    git(repo, 'config', 'extensions.worktreeConfig', 'true');
    if (fixture.user) await own(repo);
    const agent = (await create({
      worktree_mode: 'create_worktree',
      worktree_repo: repo,
      command: plant(repo),
      start: true,
    })) as Agent;
    await fixture.plane.finished(agent.id);
    const canary = join(fixture.work, 'ran');
    await writeFile(join(repo, 'a.txt'), 'changed\n');
    for (const args of [['status'], ['commit', '-qam', 'x']]) {
      const who = ['-c', 'safe.directory=*', '-c', 'user.name=o', '-c', 'user.email=o@example.com'];
      execFileSync('git', [...who, ...args], { cwd: repo, stdio: 'pipe' });
    }
    expect(existsSync(join(fixture.work, 'reflog'))).toBe(false);
    expect(existsSync(canary), await fixture.outputOf(agent.id)).toBe(false);
  });

  sandboxed(`the agent can signal neither the service nor other agents${note}`, async () => {
    const other = await fixture.bob.call('createAgent', {
      body: {
        name: 'bob',
        node_id: fixture.node_id,
        workdir: fixture.work,
        command: 'sleep 1000',
        start: true,
      },
    });
    const [session] = (await fixture.bob.call('listSessions', {
      params: { agent_id: other.id },
      query: {},
    })) as { pid: number }[];
    const pids = [(fixture.node ?? fixture.plane).pid, session!.pid];
    const output = await fixture.run(
      `for pid in ${pids.join(' ')}; do kill -0 $pid && echo reached $pid; kill -9 $pid; ls /proc/$pid; done`,
    );
    expect(output).not.toContain('reached');
    expect((await fixture.bob.call('getAgent', { params: { agent_id: other.id } })).status).toBe('running');
    await fixture.bob.call('stopAgent', { params: { agent_id: other.id }, body: { grace_seconds: 0 } });
  });

  sandboxed(`the agent can read its own token, but no other session's${note}`, async () => {
    const body = { name: 'bob', node_id: fixture.node_id, workdir: fixture.work, start: true };
    const other = await fixture.bob.call('createAgent', {
      body: { ...body, command: 'echo "$SVC_ACTOR_TOKEN_FILE"; sleep 1000' },
    });
    let bobs_token = '';
    while (bobs_token === '') {
      bobs_token = (await fixture.outputOf(other.id)).trim();
      await sleep(20);
    }
    const output = await fixture.run(
      `test -s "$SVC_ACTOR_TOKEN_FILE" && echo own; cat ${bobs_token}; ls ${dirname(bobs_token)}; ls ${dirname(dirname(bobs_token))}`,
    );
    expect(output).toMatch(/^own$/m);
    expect(output).toContain(`cat: ${bobs_token}: No such file or directory`);
    expect(output).not.toMatch(/^(token|eyJ|svc_)/m);
    await fixture.bob.call('stopAgent', { params: { agent_id: other.id }, body: { grace_seconds: 0 } });
  });

  /** Makes the agents' user the owner of a folder, as if an agent had created it. */
  async function own(folder: string): Promise<void> {
    fixture.own(folder);
  }

  sandboxed(`the agent cannot write any kernel setting${note}`, async () => {
    // Only checks, and changes nothing if the check fails.
    const output = await fixture.run(
      'find /proc -writable ! -path "/proc/[0-9]*" ! -type l 2>/dev/null; echo done',
    );
    expect(output).toBe('done\n');
  });

  sandboxed(`a relative link in place of the workdir reveals nothing${note}`, async () => {
    const folder = await fixture.folder('relative');
    const path = join(folder, 'wd');
    await mkdir(path);
    await fixture.own(folder);
    const agent = (await create({
      workdir: path,
      command: `ls -a ${fixture.data_dir}; cat ${fixture.data_dir}/hidden`,
    })) as Agent;
    const outputs: string[] = [];
    await race(SWAP, path, relative(folder, fixture.data_dir), 24, async () => {
      await fixture.alice.call('startAgent', { params: { agent_id: agent.id } });
      await fixture.plane.finished(agent.id);
      outputs.push(await fixture.outputOf(agent.id));
    });
    expect(outputs.length).toBeGreaterThan(0);
    expect(outputs.join('')).not.toMatch(/sesame|secret\.key|node\.json|hidden\n/);
  });

  sandboxed(
    `a folder that imitates git's record of a worktree gives no access to worktrees of others${note}`,
    async () => {
      const repo = makeRepository(join(fixture.work, 'forged'), { 'a.txt': 'one\n' });
      const forger = await fixture.folder('forger');
      await mkdir(join(repo, 'worktrees/n'), { recursive: true });
      await writeFile(join(repo, 'worktrees/n/gitdir'), `${forger}/.git\n`);
      await writeFile(join(repo, 'private'), SECRET);
      git(repo, 'add', '--all');
      git(repo, 'commit', '--quiet', '--message', 'forged');
      await fixture.own(repo);
      const bobs_agent = (await fixture.bob.call('createAgent', {
        body: {
          ...{ name: 'bob', node_id: fixture.node_id, command: 'true' },
          ...{ worktree_mode: 'create_worktree', worktree_repo: repo },
        },
      })) as Agent;
      await writeFile(join(forger, '.git'), `gitdir: ${bobs_agent.workdir}/worktrees/n\n`);
      const output = await fixture.run(`cat ${bobs_agent.workdir}/private; ls ${bobs_agent.workdir}`, {
        workdir: forger,
      });
      expect(output).not.toMatch(/sesame|a\.txt/);
    },
  );

  attack(`writing to a session's control channel does not decide what a stop ends${note}`, async () => {
    const victim = spawn('sleep', ['1000'], { stdio: 'ignore' });
    try {
      const agent = await fixture.start('while :; do sleep 0.1; done');
      const control = join(fixture.data_dir, 'sessions', agent.session_id!, 'pipes/ctl');
      await writeFile(control, `keeper ${victim.pid}\nmain ${victim.pid}\nout\n`, { flag: 'a' });
      await sleep(300);
      await fixture.alice.call('stopAgent', { params: { agent_id: agent.id }, body: { grace_seconds: 0 } });
      expect([victim.exitCode, victim.signalCode]).toEqual([null, null]);
    } finally {
      victim.kill('SIGKILL');
    }
  });

  /** Configures a repository to run a program on every file, through a file that its configuration includes. */
  async function arm(repo: string, how: string, included: string): Promise<void> {
    const program = `${included}.sh`;
    const steps = [
      `cat '${fixture.data_dir}/hidden'`,
      `echo x >'${fixture.data_dir}/planted'`,
      `mkdir -p '${repo}/.git/hooks'`,
      'cat /proc/1/environ',
    ];
    await writeFile(program, `#!/bin/sh\n{ id -u; ${steps.join('; ')}; } >>'${included}.out' 2>&1\ncat\n`);
    await chmod(program, 0o755);
    await writeFile(included, `[filter "evil"]\n\tsmudge = ${program}\n\tclean = ${program}\n`);
    await writeFile(join(repo, '.git/config'), `[${how}]\n\tpath = ${included}\n`, { flag: 'a' });
    await writeFile(join(repo, '.gitattributes'), '* filter=evil\n');
    git(repo, '-c', 'filter.evil.clean=', 'add', '--all');
    git(repo, '-c', 'filter.evil.clean=', 'commit', '--quiet', '--message', 'armed');
    for (const path of [program, included])
      await chown(path, fixture.user?.uid ?? process.getuid!(), fixture.user?.gid ?? process.getgid!());
    await rm(`${included}.out`, { force: true });
  }

  async function changesOf(agent: Agent): Promise<void> {
    await fixture.alice.call('getChanges', { params: { agent_id: agent.id } }).catch(() => {});
  }

  async function mustBeUntouched(repo: string): Promise<void> {
    expect(existsSync(join(fixture.data_dir, 'planted'))).toBe(false);
    expect(existsSync(join(repo, '.git/hooks/planted'))).toBe(false);
    for (const name of (await readdir(fixture.work)).filter((each) => each.endsWith('.out'))) {
      const content = await readFile(join(fixture.work, name), 'utf8');
      expect(content).not.toContain('sesame');
      if (fixture.user) expect(content).not.toMatch(/^0$/m);
    }
  }

  /** A script that plants a program wherever somebody else's git might run it. */
  function plant(repo: string): string {
    const dir = `${repo}/.git`;
    const program = `${fixture.work}/payload.sh`;
    const run = `printf '#!/bin/sh\\necho ran >>${fixture.work}/ran\\n' >${program}; chmod +x ${program}`;
    const config = `printf '[core]\\n\\tfsmonitor = ${program}\\n\\thooksPath = ${fixture.work}\\n'`;
    const other = `${fixture.work}/other.git`;
    return [
      run,
      `cp ${program} ${fixture.work}/pre-commit`,
      `git init -q --bare ${other}; ${config} >>${other}/config`,
      `${config} >>${dir}/config`,
      `mkdir ${dir}/hooks; cp ${program} ${dir}/hooks/pre-commit`,
      `${config} >${dir}/config.worktree`,
      `echo ${other} >${dir}/commondir`,
      `for log in HEAD refs/heads/main; do ln -sf ${fixture.work}/reflog ${dir}/logs/$log; done`,
      `for own in ${dir}/worktrees/*; do ${config} >$own/config.worktree; echo ${other} >$own/commondir; done`,
      `rm -f .git; mv .git .git.old; cp -r ${other} .git`,
      'true',
    ].join('\n');
  }
});

describe('with a sandbox', () => {
  const mode: Confined = { run_as: false, sandbox: true, remote: false };
  const missing = confinementMissing(mode);
  const attack = test.skipIf(missing !== null);
  let fixture: AttackFixture;
  beforeAll(async () => {
    if (missing === null) fixture = await AttackFixture.open(mode);
  });
  afterAll(() => fixture?.close());

  attack('rejects a safe path above a hidden folder, at the start and at runtime', async () => {
    const above = join(fixture.data_dir, '..');
    await fixture.plane.kill('SIGTERM');
    await expect(fixture.plane.start({ SVC_SAFE_PATHS: above })).rejects.toThrow(
      'agents.sandbox cannot hide',
    );
    await fixture.plane.start({ SVC_SAFE_PATHS: '' });
    const change = (safe_paths: string[]) =>
      fixture.plane.client.call('updateConfig', { body: { safe_paths } });
    await expect(change([above])).rejects.toThrow('agents.sandbox cannot hide');
    await change([fixture.work]);
  });
});
