/**
 * Agents in a sandbox, with real programs: what they can do in their own folder, and what they cannot do outside of it.
 * Needs bubblewrap and a kernel that lets it create namespaces.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, chown, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Agent } from '../src/features/agents/rules.ts';
import { findUser } from '../src/node/confinement/run-as.ts';
import { directExec } from '../src/node/processes/exec.ts';
import { WITH_NODES } from '../src/testing/agent-node.ts';
import { AgentShell, SHELL } from '../src/testing/agent-shell.ts';
import { SVC, TestPlane } from '../src/testing/plane.ts';
import { git, makeRepository, type TemporaryFolder, temporaryFolder } from '../src/testing/repository.ts';
import { sandboxMissing } from '../src/testing/sandbox.ts';

const missing = sandboxMissing();
const sandboxed = test.skipIf(missing !== null);
const note = missing === null ? '' : ` (sandbox: ${missing})`;

const HOME = process.env.HOME ?? '/';
const FILE = `svc-sandbox-${process.pid}`;

let plane: TestPlane;
let repos: TemporaryFolder;
let repo: string;

beforeAll(async () => {
  if (missing !== null) return;
  plane = await TestPlane.prepare({
    env: { ...WITH_NODES, SVC_AGENTS_SANDBOX: 'bwrap' },
  });
  repos = temporaryFolder();
  repo = makeRepository(join(repos.path, 'one'), { 'a.txt': 'one\n' });
  await start();
  await plane.join();
});
afterAll(async () => {
  await plane?.close();
  repos?.remove();
});

const start = () => plane.start({ SVC_WORKTREE_REPO_ROOTS: repos.path });

interface Shell {
  agent: Agent;
  shell: AgentShell;
}

async function inWorktree(name: string): Promise<Shell> {
  const body = {
    name,
    command: SHELL,
    worktree_mode: 'create_worktree',
    worktree_repo: repo,
    start: true,
  } as const;
  const agent = await plane.client.call('createAgent', { body });
  return { agent, shell: new AgentShell(agent.workdir) };
}

/** Expects a script to fail, and returns what it printed. */
async function fails({ shell }: Shell, script: string): Promise<string> {
  const { output, exit_code } = await shell.run(script);
  expect(exit_code, `${script}: ${output}`).not.toBe(0);
  return output;
}

async function runOk({ shell }: Shell, script: string): Promise<string> {
  const { output, exit_code } = await shell.run(script);
  expect(exit_code, `${script}: ${output}`).toBe(0);
  return output;
}

const stop = ({ id }: Agent, grace_seconds = 0) =>
  plane.client.call('stopAgent', { params: { agent_id: id }, body: { grace_seconds } });

sandboxed(
  `an agent works in its folder, commits there and calls the plane, even after a restart of the plane${note}`,
  async () => {
    const one = await inWorktree('worker');
    const who = '-c user.name=A -c user.email=a@example.com';
    await runOk(
      one,
      `echo more >b.txt && git add b.txt && git ${who} commit -q -m more && git status --short`,
    );
    expect(await runOk(one, 'git log --format=%s')).toBe('more\nfirst');
    await runOk(
      one,
      `echo x >/tmp/${FILE} && cat /tmp/${FILE} && echo >/dev/null && head -c 4 /dev/urandom >/dev/null`,
    );
    expect(existsSync(join('/tmp', FILE))).toBe(false);
    const whoami = () => runOk(one, 'svc actor whoami').then(JSON.parse);
    expect(await whoami()).toMatchObject({ agent_id: one.agent.id });
    await plane.kill();
    await start();
    // The plane listens on another port now.
    expect(await whoami()).toMatchObject({ agent_id: one.agent.id });
    await stop(one.agent);
  },
);

sandboxed(
  `an agent cannot read files of the service or of other agents, and cannot write elsewhere${note}`,
  async () => {
    const [one, other] = [await inWorktree('one'), await inWorktree('other')];
    const { data_dir } = plane;
    await writeFile(join(other.agent.workdir, 'mine'), 'secret');
    for (const file of ['svc.db', 'secret.key', 'sessions', 'log', 'internal-grpc', 'plane.json']) {
      expect(existsSync(join(data_dir, file))).toBe(true);
      await fails(one, `cat '${join(data_dir, file)}' || [ -n "$(ls '${join(data_dir, file)}')" ]`);
    }
    await fails(one, `cat '${join(other.agent.workdir, 'mine')}'`);
    await fails(one, `cat '${join(data_dir, 'actor', `${other.agent.session_id}.own`, 'token')}'`);
    expect(existsSync(join(data_dir, 'actor', `${other.agent.session_id}.own`, 'token'))).toBe(true);
    const by_proc = `/proc/${plane.pid}`;
    for (const way of ['root', 'cwd', 'environ', 'mem']) {
      await fails(one, `ls ${by_proc}/${way}/ >/dev/null 2>&1 || head -c 1 ${by_proc}/${way}`);
    }
    const svc = await readFile(SVC);
    const outside = [
      join(repo, 'new'),
      join(repo, '.git', 'hooks', 'post-commit'),
      join(HOME, FILE),
      join('/etc', FILE),
    ];
    // A write below a private folder such as /tmp may succeed, but changes nothing outside of the sandbox.
    for (const path of outside) await one.shell.run(`echo x >>'${path}'`);
    expect(outside.filter((path) => existsSync(path))).toEqual([]);
    await fails(one, `echo x >>'${SVC}'`);
    expect((await readFile(SVC)).equals(svc)).toBe(true);
    await fails(one, 'git config core.hooksPath /tmp');
    await fails(one, 'mkdir /tmp/m && mount -t tmpfs none /tmp/m');
    await fails(one, `unshare --user --map-root-user --mount umount '${data_dir}'`);
    // Safe paths are shared by all agents.
    await runOk(one, `echo x >'${join(plane.work, 'shared')}'`);
    await Promise.all([stop(one.agent), stop(other.agent)]);
  },
);

sandboxed(`a worktree is deleted with its agent, including unsaved work on request${note}`, async () => {
  const [clean, dirty, broken] = [
    await inWorktree('clean'),
    await inWorktree('dirty'),
    await inWorktree('broken'),
  ];
  await Promise.all([clean, dirty, broken].map(({ agent }) => stop(agent)));
  for (const name of await readdir(clean.agent.workdir)) {
    if (!['.git', 'a.txt'].includes(name)) await rm(join(clean.agent.workdir, name));
  }
  await rm(join(broken.agent.workdir, '.git'));
  const remove = ({ agent }: Shell, delete_worktree: boolean) =>
    plane.client.call('deleteAgent', { params: { agent_id: agent.id }, query: { delete_worktree } });
  expect(await remove(clean, false)).toBeUndefined();
  for (const one of [dirty, broken]) expect(await remove(one, true)).toBeUndefined();
  for (const { agent } of [clean, dirty, broken]) {
    expect(existsSync(agent.workdir)).toBe(false);
    expect(git(repo, 'worktree', 'list')).not.toContain(agent.workdir);
    expect(git(repo, 'branch', '--list', agent.worktree_branch!)).toBe('');
  }
});

sandboxed(`a .git file that an agent forges gives no access to a repository${note}`, async () => {
  const other_agent = await inWorktree('theirs');
  const own = (await readFile(join(other_agent.agent.workdir, '.git'), 'utf8'))
    .replace('gitdir: ', '')
    .trim();
  const workdir = join(plane.work, 'forger');
  await mkdir(workdir);
  await writeFile(join(workdir, '.git'), `gitdir: ${own}\n`);
  const agent = await plane.agent(SHELL, { workdir });
  const forger = { agent, shell: new AgentShell(workdir) };
  await fails(forger, `echo x >'${join(repo, '.git', 'objects', 'x')}'`);
  await Promise.all([stop(agent), stop(other_agent.agent)]);
});

sandboxed(`grace periods, child processes and exit codes work as without a sandbox${note}`, async () => {
  const workdir = join(plane.work, 'ends');
  await mkdir(workdir);
  const agent = await plane.agent(
    'trap "sleep 0.5; echo bye; exit 0" TERM; setsid sleep 1000 & echo up; while :; do sleep 0.05; done',
    { workdir },
  );
  await plane.frames(agent.id, (frames) => frames.some(({ data }) => data.data === 'up\n'));
  await plane.kill();
  await start();
  expect(await plane.get(agent.id)).toMatchObject({ status: 'running', session_id: agent.session_id });
  const stopped = await stop(agent, 30);
  expect(stopped).toMatchObject({ status: 'cancelled', exit_code: 0, leftovers: [] });
  expect((await plane.output(agent.id, { stream: 'stdout' })).toString()).toBe('up\nbye\n');
  const codes = [];
  for (const command of ['exit 7', 'kill -9 $$', '/nonexistent/program']) {
    const { exit_code, exit_signal, reason } = await plane.finished(
      (await plane.agent(command, { workdir })).id,
    );
    codes.push([exit_code, exit_signal, reason]);
  }
  // The sandbox reports a signal by the exit code, as shells do.
  expect(codes).toEqual([
    [7, null, 'exit_code'],
    [137, null, 'exit_code'],
    [127, null, 'exit_code'],
  ]);
  // Only its process session shows which agent this process belongs to.
  const time = `1000.${process.pid}`;
  const quiet = `env -i /bin/sh -c "touch ready; exec sleep ${time}" >/dev/null 2>&1 </dev/null &`;
  await plane.finished(
    (await plane.agent(`${quiet} while [ ! -e ready ]; do sleep 0.05; done`, { workdir })).id,
  );
  expect(commandLines().filter((line) => line === `sleep ${time}`)).toEqual([]);
  const absent = await plane.finished((await plane.agent(['no-such-program'], { workdir })).id);
  expect(absent).toMatchObject({ reason: 'spawn_failed' });
});

sandboxed(`agents of another user run in a sandbox too${note}`, async () => {
  const user = await findUser(directExec, 'nobody');
  const other_plane = await TestPlane.prepare({
    env: {
      ...WITH_NODES,
      ...{ SVC_AGENTS_SANDBOX: 'bwrap', SVC_AGENTS_RUN_AS: 'nobody' },
    },
  });
  try {
    await chmod(other_plane.folder, 0o711);
    await chown(other_plane.work, user.uid, user.gid);
    const runtime = join(other_plane.folder, 'run');
    await mkdir(runtime);
    await other_plane.start({ RUNTIME_DIRECTORY: runtime });
    await other_plane.join();
    const agent = await other_plane.agent(SHELL);
    const one = { agent, shell: new AgentShell(other_plane.work) };
    expect(await runOk(one, 'id -u && touch here && ls here')).toBe(`${user.uid}\nhere`);
    await fails(one, 'echo x >/var/tmp/../../etc/x');
    await one.shell.run(`echo x >'/root/${FILE}'`);
    expect(existsSync(join('/root', FILE))).toBe(false);
    await fails(one, `ls '${other_plane.data_dir}/sessions'`);
    expect(JSON.parse(await runOk(one, 'svc actor whoami'))).toMatchObject({ agent_id: agent.id });
    await other_plane.client.call('stopAgent', {
      params: { agent_id: agent.id },
      body: { grace_seconds: 0 },
    });
  } finally {
    await other_plane.close();
  }
});

/** The command lines of all processes on this machine. */
function commandLines(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim();
      } catch {
        return '';
      }
    });
}
