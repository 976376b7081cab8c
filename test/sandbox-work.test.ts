/**
 * What agents can do in a sandbox, with real programs: commit and fetch, install packages without a network, keep a
 * preset's state, and hold a conversation. Needs bubblewrap, and root for agents of another user.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import type { Client } from '../src/client/client.ts';
import type { Review } from '../src/features/reviews/rules.ts';
import { asUser, type RunAs } from '../src/node/confinement/run-as.ts';
import { AgentShell, SHELL } from '../src/testing/agent-shell.ts';
import { AttackFixture, confinementMissing, confinements } from '../src/testing/attack-fixture.ts';
import { commit, git, makeRepository } from '../src/testing/repository.ts';

/** The interpreter itself, since `python3` on a PATH may be a script of a version manager. */
const python = pythonOf();
/** Homes are empty in a sandbox, so an operator must make a Python in one readable. */
const opened: Record<string, string> = python === null ? {} : { SVC_AGENTS_SANDBOX_READ: python.prefix };

const modes = confinements.filter(({ sandbox, remote }) => sandbox && !remote);

describe.each(modes)('with $name', (mode) => {
  const missing = confinementMissing(mode);
  const sandboxed = test.skipIf(missing !== null);
  const note = missing === null ? '' : ` (needs ${missing})`;
  let fixture: AttackFixture;
  /** `nobody` has no home directory, so its agents use their private /tmp. */
  const env: Record<string, string> = mode.run_as ? { HOME: '/tmp' } : {};

  beforeAll(async () => {
    if (missing !== null) return;
    fixture = await AttackFixture.open(mode, opened);
    const settings = '[user]\n\tname = Operator\n\temail = operator@example.com\n';
    await writeFile(join(fixture.home, '.gitconfig'), settings);
  });
  afterAll(() => fixture?.close());

  async function inWorktree(repo: string): Promise<AgentShell & { id: string }> {
    const agent = await fixture.alice.call('createAgent', {
      body: {
        ...{ name: 'works', node_id: fixture.node_id, command: SHELL, env, start: true },
        ...{ worktree_mode: 'create_worktree', worktree_repo: repo },
      },
    });
    return Object.assign(new AgentShell(agent.workdir), { id: agent.id });
  }

  /** Expects a script to end with 0, and returns what it printed. */
  async function runOk(shell: AgentShell, script: string): Promise<string> {
    const { output, exit_code } = await shell.run(script);
    expect(exit_code, `${script}: ${output}`).toBe(0);
    return output;
  }

  /** Runs a script as an agent of a user to its end. */
  async function run(client: Client, body: { preset?: string; command: string }) {
    const agent = await client.call('createAgent', {
      body: {
        ...{ name: 'runs', node_id: fixture.node_id, workdir: fixture.work, env, start: true },
        ...{ protocol: 'plain', ...body },
      },
    });
    const { exit_code } = await fixture.plane.finished(agent.id);
    return { exit_code, printed: await fixture.outputOf(agent.id) };
  }

  sandboxed(
    `an agent commits, fetches and rebases in its worktree, and its changes are available as a patch${note}`,
    async () => {
      const theirs = makeRepository(join(fixture.repos, 'upstream'), { 'theirs.txt': 'one\n' });
      const ours = join(fixture.repos, 'ours');
      git(fixture.repos, 'clone', '--quiet', theirs, ours);
      commit(theirs, { 'theirs.txt': 'two\n' }, 'upstream');
      for (const repo of [theirs, ours]) fixture.own(repo);
      const shell = await inWorktree(ours);
      // Git reads the settings of the user that the agent runs as; `nobody` has none.
      const who = mode.run_as ? 'Nobody <nobody@example.com>' : 'Operator <operator@example.com>';
      if (mode.run_as) {
        await runOk(
          shell,
          'git config --global user.name Nobody; git config --global user.email nobody@example.com',
        );
      }
      await runOk(shell, 'echo new >new.txt');
      const headers = { accept: 'text/x-diff' };
      const patch = await fixture.alice.open('getChanges', { params: { agent_id: shell.id }, headers });
      expect(await patch.text()).toContain('+++ b/new.txt\n');
      await runOk(shell, 'git add new.txt && git commit --quiet --message mine');
      expect(await runOk(shell, 'git log -1 --format="%an <%ae>"')).toBe(who);
      await runOk(shell, 'git fetch --quiet origin && git rebase --quiet origin/main');
      expect(await runOk(shell, 'git log --format=%s && cat theirs.txt')).toBe('mine\nupstream\nfirst\ntwo');
      const remote = async () =>
        (await fixture.alice.call('getChanges', { params: { agent_id: shell.id } })).remote;
      expect(await remote()).toEqual({ name: 'origin', url: null, pushed: false });
      // What git records after a push.
      await runOk(shell, 'git update-ref "refs/remotes/origin/$(git branch --show-current)" HEAD');
      expect(await remote()).toEqual({ name: 'origin', url: null, pushed: true });
      await shell.stop();
    },
  );

  sandboxed(
    `an agent keeps its branch when refs are packed, and git reports why it cannot delete one${note}`,
    async () => {
      const repo = makeRepository(join(fixture.repos, 'packed'), { 'a.txt': 'one\n' });
      const theirs = join(fixture.repos, 'packed-upstream');
      git(fixture.repos, 'clone', '--quiet', '--bare', repo, theirs);
      git(repo, 'remote', 'add', 'origin', theirs);
      for (const name of ['packed', 'theirs']) git(repo, 'branch', name);
      git(theirs, 'branch', 'stale', 'main');
      git(repo, 'fetch', '--quiet', 'origin');
      git(repo, 'pack-refs', '--all');
      git(theirs, 'branch', '-D', 'stale');
      for (const each of [repo, theirs]) fixture.own(each);
      const shell = await inWorktree(repo);
      for (const script of [
        'git branch loose; git branch -D loose',
        'git branch -D packed',
        'git fetch --prune origin',
      ]) {
        const { output, exit_code } = await shell.run(script);
        expect([script, exit_code]).toEqual([script, 1]);
        expect(output).toMatch(/packed-refs\.lock': Read-only file system/);
      }
      await runOk(shell, 'git fetch --quiet origin && git branch new && git branch --force packed HEAD');
      // Like `git gc` after a commit by the operator.
      const before = await runOk(shell, 'git for-each-ref');
      git(repo, '-c', 'safe.directory=*', 'pack-refs', '--all');
      expect(await runOk(shell, 'git for-each-ref')).toBe(before);
      await runOk(
        shell,
        'echo more >>a.txt && git -c user.name=A -c user.email=a@example.com commit --quiet -am more',
      );
      expect(await runOk(shell, 'git log --format=%s')).toBe('more\nfirst');
      expect(git(repo, '-c', 'safe.directory=*', 'branch', '--list', 'packed').trim()).toBe('packed');
      await shell.stop();
    },
  );

  sandboxed(`an agent can start threads, and programs in nested sandboxes${note}`, async () => {
    const threads = `const { Worker } = require("worker_threads");
      new Worker("require(\\"child_process\\").execSync(\\"echo from a thread\\", { stdio: \\"inherit\\" })", { eval: true })`;
    const namespaces = '--unshare-user --unshare-ipc --unshare-net --unshare-pid';
    // The kernel does not map user 0 for a process without capabilities.
    const inner = mode.run_as ? `bwrap --ro-bind / / --dev /dev ${namespaces}` : '';
    const { printed } = await run(fixture.alice, {
      command: `'${process.execPath}' -e '${threads}'; ${inner} echo from a sandbox; perl -e 'print fork ? "" : "from a child\n"; wait'`,
    });
    expect(printed.split('\n')).toEqual(['from a thread', 'from a sandbox', 'from a child', '']);
  });

  const npm = found('npm');
  test.skipIf(missing !== null || !npm)(
    `an agent installs npm packages from its repository with the lock file${note}${npm ? '' : ' (needs npm)'}`,
    async () => {
      const repo = makeRepository(join(fixture.repos, 'npm'));
      const dependencies = { greeting: 'file:greeting.tgz' };
      commit(
        repo,
        {
          'package/package.json': JSON.stringify({ name: 'greeting', version: '1.0.0', main: 'index.js' }),
          'package/index.js': 'module.exports = "hello from a package";\n',
          'package.json': JSON.stringify({ name: 'app', version: '1.0.0', dependencies }),
          'package-lock.json': JSON.stringify({
            ...{ name: 'app', version: '1.0.0', lockfileVersion: 3, requires: true },
            packages: {
              '': { name: 'app', version: '1.0.0', dependencies },
              'node_modules/greeting': { version: '1.0.0', resolved: 'file:greeting.tgz' },
            },
          }),
        },
        'app',
      );
      execFileSync('tar', ['-czf', 'greeting.tgz', 'package'], { cwd: repo });
      commit(repo, {}, 'tarball');
      fixture.own(repo);
      const shell = await inWorktree(repo);
      await runOk(shell, 'npm ci --no-audit --no-fund');
      expect(await runOk(shell, `node -p 'require("greeting")'`)).toBe('hello from a package');
      await shell.stop();
    },
  );

  // The Python of this machine may be in a home that agents of another user cannot enter.
  if (!mode.run_as)
    sandboxed(`an agent builds and installs a Python package for its user${note}`, async ({ skip }) => {
      skip(
        python === null || !runsPip(python, fixture.user),
        "needs pip in a Python that the agents' user can run",
      );
      const repo = makeRepository(join(fixture.repos, 'pip'), {
        'pyproject.toml': '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        'backend.py': BACKEND,
        'greeting.py': 'WORDS = "hello from a module"\n',
      });
      fixture.own(repo);
      const shell = await inWorktree(repo);
      const install = 'install --user --no-index --no-build-isolation --disable-pip-version-check';
      await runOk(shell, `PIP_BREAK_SYSTEM_PACKAGES=1 '${python!.program}' -m pip ${install} .`);
      const use = 'import greeting; print(greeting.WORDS, greeting.__file__)';
      const output = await runOk(shell, `cd / && '${python!.program}' -c '${use}' && echo "$HOME"`);
      const [, file, home] = /^hello from a module (\S+)\n(\S+)$/.exec(output) ?? [];
      expect(file?.startsWith(`${home}/`), output).toBe(true);
      await shell.stop();
    });

  /** Agents of another user use that user's home, and `nobody` has none. */
  const persistent = (name: string, body: () => Promise<void>) => {
    if (!mode.run_as) sandboxed(name, body);
  };

  persistent(`a preset's state persists across sessions, separately for each user${note}`, async () => {
    const writes = { preset: 'claude', command: 'echo settings >"$HOME/.claude/x"' };
    const reads = { preset: 'claude', command: 'cat "$HOME/.claude/x"' };
    expect(await run(fixture.alice, writes)).toMatchObject({ exit_code: 0 });
    expect(await run(fixture.alice, reads)).toEqual({ exit_code: 0, printed: 'settings\n' });
    expect((await run(fixture.bob, reads)).exit_code).toBe(1);
    expect((await run(fixture.alice, { ...reads, preset: 'codex' })).exit_code).toBe(1);
    expect(existsSync(join(fixture.home, '.claude/x'))).toBe(false);
  });

  persistent(
    `the service's sign-in can be read only by agents of its preset, and changed by none${note}`,
    async () => {
      const file = join(fixture.home, '.claude/.credentials.json');
      await mkdir(dirname(file));
      await writeFile(file, 'signed in', { mode: 0o600 });
      const here = '"$HOME/.claude/.credentials.json"';
      const command = `cat ${here}; echo x >${here}; rm ${here}; mv "$HOME/.claude" "$HOME/other"`;
      expect((await run(fixture.alice, { preset: 'claude', command })).printed).toContain('signed in');
      expect((await run(fixture.alice, { preset: 'codex', command })).printed).not.toContain('signed in');
      expect((await run(fixture.alice, { command })).printed).not.toContain('signed in');
      expect(readFileSync(file, 'utf8')).toBe('signed in');
      await rm(dirname(file), { recursive: true });
      expect((await run(fixture.alice, { preset: 'claude', command: `cat ${here}` })).printed).not.toContain(
        'signed in',
      );
    },
  );

  sandboxed(`the demo preset asks before it writes, and writes once it is allowed to${note}`, async () => {
    const workdir = await fixture.folder('demo');
    const agent = await fixture.alice.call('createAgent', {
      body: {
        name: 'demo',
        preset: 'demo',
        node_id: fixture.node_id,
        workdir,
        env,
        prompt: 'Go on.',
        start: true,
      },
    });
    const pending = async () => {
      const reviews = await fixture.alice.call('listReviews', { query: { agent_id: agent.id } });
      return (reviews as Review[]).filter(({ status }) => status === 'pending');
    };
    while ((await pending()).length === 0) await sleep(50);
    expect(await readdir(workdir)).toEqual([]);
    const [review] = await pending();
    await fixture.alice.call('respondReview', {
      params: { review_id: review!.id },
      body: { decision: 'allow' },
    });
    const prompts = () => fixture.alice.call('listPrompts', { params: { agent_id: agent.id } });
    while ((await prompts()).length > 0) await sleep(50);
    const { asks, status } = await fixture.plane.get(agent.id);
    expect({ asks, status }).toEqual({ asks: 'asks', status: 'running' });
    expect(await readdir(workdir)).toEqual(['svc-demo.md']);
  });
});

/** A build backend that needs no package: it packs one module into a wheel. */
const BACKEND = `import zipfile

def build_wheel(directory, config_settings=None, metadata_directory=None):
    name = "greeting-1.0-py3-none-any.whl"
    info = "greeting-1.0.dist-info"
    with zipfile.ZipFile(directory + "/" + name, "w") as wheel:
        wheel.write("greeting.py")
        wheel.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: greeting\\nVersion: 1.0\\n")
        wheel.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "/RECORD", "")
    return name
`;

function found(program: string): boolean {
  return spawnSync(program, ['--version']).status === 0;
}

/** Whether a user can run pip outside of a sandbox. */
function runsPip({ program }: Python, user: RunAs | null): boolean {
  const [first, ...args] = asUser(['/bin/sh', '-c', 'exec "$0" -m pip --version', program], user);
  return spawnSync(first, args, { cwd: '/' }).status === 0;
}

interface Python {
  program: string;
  prefix: string;
}

function pythonOf(): Python | null {
  const script = 'import sys; print(sys.executable); print(sys.base_prefix)';
  const { status, stdout } = spawnSync('python3', ['-c', script], { encoding: 'utf8' });
  const [program, prefix] = stdout?.trim().split('\n') ?? [];
  return status === 0 && program && prefix ? { program, prefix } : null;
}
