import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, readFile, rm, stat, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MIB } from '../base/limits.ts';
import { hasProc, isAlive, readStat } from '../base/proc.ts';
import type { Launch } from '../core/session.ts';
import { openTestNode } from '../testing/local-node.ts';
import { isPidAlive, launchOf, RecordingSink, readAll, until } from '../testing/node-suite.ts';
import type { LocalNode, LocalNodeOptions } from './node.ts';
import { Launcher } from './processes/launcher-client.ts';
import { SessionFiles } from './sessions/session-files.ts';

const quick = { helper_check_ms: 100, sweep_ms: 50 };
const isRoot = process.getuid?.() === 0;

describe('sessions under faults', { timeout: 120_000 }, () => {
  let folder: string;
  let data: string;
  let workdir: string;
  let node: LocalNode;
  let seen: RecordingSink;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-faults-'));
    data = join(folder, 'data');
    workdir = join(folder, 'work');
    await mkdir(workdir);
    await open();
  });

  afterEach(async () => {
    const ids = new Set([
      ...seen.sessions.map((view) => view.session_id),
      ...seen.facts.map((f) => f.session_id),
    ]);
    for (const id of ids) {
      await node.stop(id, 0);
      await seen.ended(id);
    }
    await node.close();
    // The guard outlives the node and may still write its file.
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }, 120_000);

  async function open(more: Partial<LocalNodeOptions> = {}): Promise<void> {
    node = await openTestNode(data, { ...quick, ...more });
    seen = new RecordingSink();
    await node.attach(seen);
  }

  async function reopen(more: Partial<LocalNodeOptions> = {}): Promise<void> {
    await node.close();
    await open(more);
  }

  async function script(text: string, more: Partial<Launch> = {}): Promise<string> {
    const launch = launchOf(workdir, ['/bin/sh', '-c', text], more);
    await node.start(launch);
    return launch.session_id;
  }

  const filesOf = (id: string) => new SessionFiles(join(data, 'sessions', id));
  const handleOf = (id: string) => until(() => filesOf(id).readHandle());
  const output = async (id: string) => (await readAll(node, id, 'stdout')).toString();
  const warnings = (id: string) =>
    seen.eventsOf(id).flatMap(({ body }) => (body.kind === 'trouble' ? [body.code as string] : []));

  describe('a killed helper', () => {
    it('pump is replaced and reported while the agent continues', async () => {
      const id = await script('i=0; until [ -e stop ]; do i=$((i+1)); echo $i; sleep 0.01; done; echo last');
      const before = await handleOf(id);
      await until(async () => (await output(id)).includes('5\n'));
      process.kill(before.pumps.stdout.pid, 'SIGKILL');
      await until(() => warnings(id).includes('pump_restarted'));
      const length = (await output(id)).length;
      await until(async () => (await output(id)).length > length);
      await writeFile(join(workdir, 'stop'), '');
      const end = await seen.ended(id);
      expect(end.exit.exit_code).toBe(0);
      expect(await output(id)).toMatch(/\nlast\n$/);
      expect((await handleOf(id)).main).toEqual(before.main);
    });

    it('pump loses no bytes in its FIFO when the command ends, and is reported', async () => {
      await reopen({ helper_check_ms: 60_000 });
      const id = await script(
        'echo first; until [ -e stop ]; do sleep 0.02; done; i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo $i; done',
      );
      await until(async () => (await output(id)) === 'first\n');
      const { pumps } = await handleOf(id);
      for (const { pid } of Object.values(pumps)) process.kill(pid, 'SIGKILL');
      await until(() => !Object.values(pumps).some(isAlive));
      await writeFile(join(workdir, 'stop'), '');
      expect((await seen.ended(id)).exit.exit_code).toBe(0);
      const lines = Array.from({ length: 2000 }, (_, at) => `${at + 1}\n`).join('');
      expect(await output(id)).toBe(`first\n${lines}`);
      expect(warnings(id)).toEqual(['pump_restarted', 'pump_restarted']);
    });

    it('feeder is replaced, and every byte of stdin arrives once', async () => {
      const id = await script('cat', { stdin: true });
      let expected = '';
      for (let round = 0; round < 4; round++) {
        const { feeder } = await handleOf(id);
        for (let i = 0; i < 50; i++) {
          const frame = `frame ${round} ${i}\n`;
          await node.input(id, expected.length, Buffer.from(frame), false);
          expected += frame;
          if (i === 25 && feeder) process.kill(feeder.pid, 'SIGKILL');
        }
        await until(() => warnings(id).length === round + 1);
      }
      await node.input(id, expected.length, Buffer.alloc(0), true);
      expect((await seen.ended(id)).exit.exit_code).toBe(0);
      expect(await output(id)).toBe(expected);
    });

    it('keeper is replaced, and the session ends normally', async () => {
      const id = await script(
        'read -r line; echo "got $line"; until [ -e stop ]; do sleep 0.02; done; exit 6',
        {
          stdin: true,
        },
      );
      const before = await handleOf(id);
      process.kill(before.keeper.pid, 'SIGKILL');
      await until(async () => (await handleOf(id)).keeper.pid !== before.keeper.pid);
      process.kill(before.pumps.stdout.pid, 'SIGKILL');
      await until(() => warnings(id).includes('pump_restarted'));
      await node.input(id, 0, Buffer.from('word\n'), false);
      await until(async () => (await output(id)) === 'got word\n');
      await writeFile(join(workdir, 'stop'), '');
      expect((await seen.ended(id)).exit.exit_code).toBe(6);
      const after = await handleOf(id);
      expect([after.keeper, after.pumps.stdout].map(isAlive)).toEqual([false, false]);
    });

    it('feeder ends stdin with a warning if its keeper was killed before', async () => {
      const id = await script('cat; echo over', { stdin: true });
      const { keeper, feeder } = await handleOf(id);
      await node.input(id, 0, Buffer.from('one\n'), false);
      await until(async () => (await output(id)) === 'one\n');
      process.kill(keeper.pid, 'SIGKILL');
      await until(async () => (await handleOf(id)).keeper.pid !== keeper.pid);
      process.kill(feeder?.pid ?? 0, 'SIGKILL');
      expect((await seen.ended(id)).exit.exit_code).toBe(0);
      expect(await output(id)).toBe('one\nover\n');
      expect(warnings(id)).toEqual(['feeder_restarted']);
    });

    it('wrapper leaves the agent running, and its exit status is unknown', async () => {
      const id = await script('until [ -e stop ]; do sleep 0.02; done; echo done');
      const { wrapper, main } = await handleOf(id);
      process.kill(wrapper.pid, 'SIGKILL');
      await until(() => !isAlive(wrapper));
      await reopen();
      expect(seen.sessions[0]?.phase).toBe('running');
      expect(isAlive(main)).toBe(true);
      await writeFile(join(workdir, 'stop'), '');
      const end = await seen.ended(id);
      expect(end.exit).toMatchObject({ exit_code: null, reason: 'exit_status_unknown' });
      expect(await output(id)).toBe('done\n');
    });

    it('wrapper does not prevent a stop from ending the tree', async () => {
      const id = await script('sleep 1000');
      const { wrapper, main } = await handleOf(id);
      process.kill(wrapper.pid, 'SIGKILL');
      expect((await node.stop(id, 1000)).survivors).toEqual([]);
      expect(isAlive(main)).toBe(false);
      expect((await seen.ended(id)).exit.reason).toBe('exit_status_unknown');
    });

    it('launcher is replaced, and each request has its effect once', async () => {
      const launcher = new Launcher();
      await reopen({ launcher });
      await script('sleep 1000');
      const launches = Array.from({ length: 5 }, () =>
        launchOf(workdir, ['/bin/sh', '-c', 'echo $$ >>pids; sleep 1000']),
      );
      const starts = launches.map((launch) => node.start(launch));
      if (launcher.pid) process.kill(launcher.pid, 'SIGKILL');
      const views = await Promise.all(starts);
      expect(views.every((view) => view.phase === 'running')).toBe(true);
      const pids = await until(async () => {
        const lines = (await readFile(join(workdir, 'pids'), 'utf8').catch(() => '')).trim().split('\n');
        return lines.length >= 5 ? lines : null;
      });
      expect(pids.map(Number).sort()).toEqual(views.map((view) => view.pid).sort());
      const pid = launcher.pid;
      launcher.close();
      await until(async () => pid === null || !(await isPidAlive(pid)));
      await reopen();
    });
  });

  describe('a node that is killed', () => {
    const entry = fileURLToPath(new URL('../testing/node-process.ts', import.meta.url));

    /** Runs a node until a failpoint kills it, or kills it once `up` resolves. */
    async function killedNode(launch: Launch | null, failpoint: string | null): Promise<void> {
      const child = spawn(process.execPath, [entry, data, JSON.stringify(launch)], {
        env: { ...process.env, ...(failpoint ? { SVC_FAILPOINT: `${failpoint}:kill` } : {}) },
        stdio: ['pipe', 'pipe', 'ignore'],
      });
      if (!failpoint) child.stdout.once('data', () => child.kill('SIGKILL'));
      const signal = await new Promise((resolve) => child.on('exit', (_code, name) => resolve(name)));
      expect(signal).toBe('SIGKILL');
    }

    it.each(['claim', 'spawn', 'handle', 'exit', 'ended'])(
      'at %s leaves at most one process and one end',
      async (at) => {
        await node.close();
        const launch = launchOf(workdir, ['/bin/sh', '-c', 'echo $$ >>pids; echo out; exit 9']);
        await killedNode(launch, at);
        await open();
        const end = await seen.ended(launch.session_id);
        const pids = await readFile(join(workdir, 'pids'), 'utf8').catch(() => '');
        if (end.exit.reason === 'spawn_failed') {
          expect(pids).toBe('');
        } else {
          expect(end.exit.exit_code).toBe(9);
          expect(pids.trim().split('\n')).toHaveLength(1);
          expect(await output(launch.session_id)).toBe('out\n');
        }
        if (at !== 'claim' && at !== 'spawn') expect(end.exit.exit_code).toBe(9);
        expect(seen.eventsOf(launch.session_id).filter((fact) => fact.body.kind === 'ended')).toHaveLength(1);
        // A second start with the same id finds the first one.
        expect((await node.start(launch)).end).toEqual(end);
      },
    );

    it('repeatedly loses no byte of a writing agent', async () => {
      await node.close();
      const text = 'i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo line $i; sleep 0.005; done; exit 2';
      const launch = launchOf(workdir, ['/bin/sh', '-c', text]);
      await killedNode(launch, null);
      for (let i = 0; i < 3; i++) await killedNode(null, null);
      await open();
      expect((await seen.ended(launch.session_id)).exit.exit_code).toBe(2);
      const lines = Array.from({ length: 400 }, (_, i) => `line ${i + 1}\n`).join('');
      expect(await output(launch.session_id)).toBe(lines);
    });
  });

  describe('a session directory', () => {
    /** A copy of an ended session under another id, from which the tests make invalid ones. */
    async function forge(change: (files: SessionFiles) => Promise<void>): Promise<string> {
      const id = await script('echo x');
      await seen.ended(id);
      const files = filesOf('ses_forged');
      await cp(filesOf(id).dir, files.dir, { recursive: true, filter: (path) => !path.includes('/pipes/') });
      const launch = JSON.parse(await readFile(files.path('launch.json'), 'utf8'));
      launch.launch.session_id = 'ses_forged';
      launch.cgroup = null;
      await writeFile(files.path('launch.json'), JSON.stringify(launch));
      for (const name of ['facts', 'ended']) await unlink(files.path(name));
      await change(files);
      await reopen();
      return 'ses_forged';
    }

    const without =
      (...names: string[]) =>
      async (files: SessionFiles) => {
        for (const name of names) await rm(files.path(name), { recursive: true });
      };

    it('without a claim ends as a failed spawn', async () => {
      const id = await forge(without('claimed', 'handle', 'exit', 'spawn'));
      expect((await seen.ended(id)).exit.reason).toBe('spawn_failed');
    });

    it('with only a claim ends as a failed spawn', async () => {
      const id = await forge(without('handle', 'exit', 'spawn'));
      expect((await seen.ended(id)).exit.reason).toBe('spawn_failed');
    });

    it('with the handle of another boot ends as host_restarted', async () => {
      const id = await forge(async (files) => {
        await unlink(files.path('exit'));
        const handle = await readFile(files.path('handle'), 'utf8');
        await writeFile(files.path('handle'), handle.replace(/^boot .*$/m, 'boot another'));
      });
      expect((await seen.ended(id)).exit.reason).toBe('host_restarted');
      expect(await output(id)).toBe('x\n');
    });

    it('with reused pids causes no signal to other processes', async () => {
      const sentinel = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
      const pid = sentinel.pid ?? 0;
      try {
        const id = await forge(async (files) => {
          await unlink(files.path('exit'));
          const handle = await readFile(files.path('handle'), 'utf8');
          const changed = handle.replace(/^(main|wrapper|keeper|pump_out|pump_err) .*$/gm, `$1 ${pid} 12345`);
          await writeFile(files.path('handle'), changed);
        });
        await node.stop(id, 0);
        expect((await seen.ended(id)).exit.reason).toBe('exit_status_unknown');
        expect(await isPidAlive(pid)).toBe(true);
      } finally {
        sentinel.kill('SIGKILL');
      }
    });

    it.each([
      ['an unreadable launch', 'launch.json', '{"version":1'],
      [
        'a launch of another shape',
        'launch.json',
        '{"version":1,"launch":{"session_id":"ses_forged","argv":"x"}}',
      ],
    ])('with %s is left alone', async (_what, name, text) => {
      await forge((files) => writeFile(files.path(name), text));
      expect(seen.sessions.map((view) => view.session_id)).not.toContain('ses_forged');
    });

    it('with garbage in handle and exit still ends', async () => {
      const id = await forge(async (files) => {
        await writeFile(files.path('handle'), '\0\xff'.repeat(5000));
        await writeFile(files.path('exit'), '999999999999 end end');
      });
      expect((await seen.ended(id)).exit.reason).toBe('spawn_failed');
    });

    it('is not read through a link that replaced its spool', async () => {
      await writeFile(join(folder, 'secret'), 'secret');
      const id = await forge(async (files) => {
        await unlink(files.path('out'));
        await symlink(join(folder, 'secret'), files.path('out'));
      });
      await seen.ended(id);
      expect(await output(id)).toBe('');
    });
  });

  it('committed output frees its disk space, and reading it returns output_lost', async () => {
    await reopen({ spool_keep_bytes: MIB });
    const id = await script('head -c 20971520 /dev/zero | tr "\\0" x');
    const end = await seen.ended(id);
    const blocks = async () => (await stat(filesOf(id).path('out'))).blocks * 512;
    const before = await blocks();
    node.committed(id, end.sizes, 1);
    if (!hasProc) return expect(await blocks()).toBe(before);
    await until(async () => (await blocks()) <= 2 * MIB);
    await reopen({ spool_keep_bytes: MIB });
    await expect(node.read(id, 'stdout', 0, 10)).rejects.toMatchObject({ code: 'output_lost' });
    expect(Buffer.from(await node.read(id, 'stdout', end.sizes.stdout - 2, 10)).toString()).toBe('xx');
  });

  it('a node without free descriptors reports no process as dead', async () => {
    await node.close();
    const launch = launchOf(workdir, ['/bin/sh', '-c', 'until [ -e stop ]; do sleep 0.02; done; exit 3']);
    const entry = fileURLToPath(new URL('../testing/node-process.ts', import.meta.url));
    const child = spawn(process.execPath, [entry, data, JSON.stringify(launch), 'starve'], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const exited = new Promise((resolve) => child.on('exit', resolve));
    let said = '';
    child.stdout.on('data', (text: Buffer) => {
      said += text;
    });
    await until(() => said.includes('starved'));
    const handle = await handleOf(launch.session_id);
    // No descriptor is free to examine a wrapper that dies now.
    process.kill(handle.wrapper.pid, 'SIGKILL');
    await until(() => said.includes('released'));
    child.stdin.end();
    await exited;
    expect(isAlive(handle.main)).toBe(true);
    await open();
    expect(seen.sessions[0]?.phase).toBe('running');
    await writeFile(join(workdir, 'stop'), '');
    expect((await seen.ended(launch.session_id)).exit.reason).toBe('exit_status_unknown');
  });

  it("a start that the system refuses ends as a failed spawn with the system's message", async () => {
    const launch = launchOf(workdir, ['/bin/sh', '-c', 'true', 'x'.repeat(4 * MIB)]);
    expect((await node.start(launch)).end?.exit).toMatchObject({
      reason: 'spawn_failed',
      message: 'spawn E2BIG',
    });
  });

  it('a start for which no process is free leaves nothing, and can be repeated', async () => {
    const launcher = new Launcher();
    await reopen({ launcher });
    const spawned = vi.spyOn(launcher, 'spawn');
    spawned.mockRejectedValueOnce(Object.assign(new Error('spawn EAGAIN'), { code: 'EAGAIN' }));
    const launch = launchOf(workdir, ['/bin/sh', '-c', 'cat "$SVC_STEP_INPUT"; exit 3'], {
      step_input: 'in',
    });
    await expect(node.start(launch)).rejects.toMatchObject({ code: 'process_not_started' });
    expect(await node.sessions()).toEqual([]);
    expect(filesOf(launch.session_id).directoryExists()).toBe(false);
    await expect(node.stop(launch.session_id, 0)).rejects.toMatchObject({ code: 'session_not_found' });
    expect(seen.facts).toEqual([]);
    await node.start(launch);
    expect((await seen.ended(launch.session_id)).exit.exit_code).toBe(3);
    expect(await output(launch.session_id)).toBe('in');
    await reopen();
    launcher.close();
  });

  it('a disk with too little space rejects starts', async () => {
    await reopen({ disk: { no_start_bytes: Number.MAX_SAFE_INTEGER, no_start_share: 1 } });
    await expect(script('true')).rejects.toThrow('not enough disk space');
    expect((await node.health()).disk.starts_allowed).toBe(false);
  });

  it('without setsid, an agent that kills its process group does not kill the helpers', async () => {
    await reopen({ tools: { setsid: null }, cgroup: false });
    const id = await script('trap "" TERM; sleep 1000 & kill -TERM 0; echo still; exit 4');
    const end = await seen.ended(id);
    expect(end).toMatchObject({ exit: { exit_code: 4 }, leftovers: [] });
    expect(await output(id)).toBe('still\n');
  });

  it("an agent of another user runs as that user and cannot enter the service's folders", async () => {
    if (!isRoot || !hasProc) return expect(process.getuid?.()).not.toBe(0);
    const [name = '', , uid, gid, , home = ''] = execFileSync('getent', ['passwd', 'nobody'], {
      encoding: 'utf8',
    }).split(':');
    await reopen({ run_as: { name, uid: Number(uid), gid: Number(gid), home } });
    await chmod(folder, 0o755);
    await chmod(workdir, 0o777);
    const id = await script(
      `id -u; echo $HOME; echo x >/dev/stderr; cat ${data}/sessions/*/launch.json 2>/dev/null || echo shut; read -r l; echo $l`,
      { stdin: true },
    );
    await node.input(id, 0, Buffer.from('in\n'), false);
    await seen.ended(id);
    expect(await output(id)).toBe(`${uid}\n${home}\nshut\nin\n`);
    expect((await readAll(node, id, 'stderr')).toString()).toBe('x\n');
  });

  it.each([0, 1, 3, 10, 30])(
    'a start that is interrupted by close after %i turns of the event loop is carried out once',
    async (turns) => {
      const launch = launchOf(workdir, ['/bin/sh', '-c', 'echo x >>starts; exit 5']);
      const met = node.start(launch).catch((error: Error) => error.message);
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
      await node.close();
      const answer = await met;
      if (typeof answer === 'string') expect(answer).toBe('failed to connect to remote node');
      await open();
      await node.start(launch);
      expect((await seen.ended(launch.session_id)).exit).toMatchObject({ exit_code: 5, reason: 'exit_code' });
      expect(await readFile(join(workdir, 'starts'), 'utf8')).toBe('x\n');
    },
  );

  it('a session whose directory is deleted ends as session_lost once its processes have ended', async () => {
    const id = await script('echo said; until [ -e stop ]; do sleep 0.02; done');
    const handle = await handleOf(id);
    await rm(filesOf(id).dir, { recursive: true });
    expect((await node.stop(id, 0)).survivors).toEqual([]);
    expect((await seen.ended(id)).exit.reason).toBe('session_lost');
    expect(isAlive(handle.main)).toBe(false);
    await node.forget(id);
    expect((await node.health()).sessions_live).toBe(0);
    seen.facts.length = 0;
  });

  it('a session that cannot be checked does not affect the others', async () => {
    await reopen({ watches: false });
    const broken = await script('until [ -e stop ]; do sleep 0.02; done');
    const id = await script('until [ -e stop ]; do sleep 0.02; done');
    await unlink(filesOf(broken).path('exit'));
    await symlink('exit', filesOf(broken).path('exit'));
    process.kill((await handleOf(id)).pumps.stdout.pid, 'SIGKILL');
    await until(() => warnings(id).includes('pump_restarted'));
  });

  it('a pump that a killed guard left stopped continues while the agent runs and at its end', async () => {
    const id = await script(
      'until [ -e more ]; do sleep 0.02; done; echo more; until [ -e stop ]; do sleep 0.02; done; echo last',
    );
    const { pumps } = await handleOf(id);
    process.kill(pumps.stdout.pid, 'SIGSTOP');
    await writeFile(join(workdir, 'more'), '');
    await until(async () => (await output(id)) === 'more\n');
    process.kill(pumps.stdout.pid, 'SIGSTOP');
    await writeFile(join(workdir, 'stop'), '');
    expect((await seen.ended(id)).exit.exit_code).toBe(0);
    expect(await output(id)).toBe('more\nlast\n');
  });

  it.runIf(hasProc)('ps shows which session a helper belongs to, also after a replacement', async () => {
    const id = await script('sleep 1000', { agent_id: 'agt_of_ps' });
    const title = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[2];
    const { wrapper, keeper } = await handleOf(id);
    const session = '# svc: session of agt_of_ps\neval "$svc_script"';
    expect([wrapper, keeper].map(({ pid }) => title(pid))).toEqual([session, session]);
    process.kill(keeper.pid, 'SIGKILL');
    await until(async () => (await handleOf(id)).keeper.pid !== keeper.pid);
    expect(title((await handleOf(id)).keeper.pid)).toBe(session);
  });

  it('close leaves agent and helpers running, and no variable values on disk', async () => {
    const id = await script('sleep 1000', { env: { A_SECRET: 'hunter2hunter2' } });
    const handle = await handleOf(id);
    await node.close();
    expect([handle.main, handle.wrapper, handle.keeper, handle.pumps.stdout].every(isAlive)).toBe(true);
    for (const name of ['launch.json', 'handle', 'facts', 'spawn']) {
      expect(await readFile(filesOf(id).path(name), 'utf8')).not.toContain('hunter2');
    }
    if (hasProc) {
      for (const ref of [handle.main, handle.wrapper, handle.keeper]) {
        expect(readFileSync(`/proc/${ref.pid}/cmdline`, 'utf8')).not.toContain('hunter2');
      }
    }
    await open();
    expect(seen.sessions[0]?.pid).toBe(handle.main.pid);
    expect(readStat(handle.main.pid)?.start).toBe(handle.main.start);
  });
});
