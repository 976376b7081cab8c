/**
 * The tests that every implementation of `Node` must pass: exact bytes, correct ends, no processes left, stdin exactly once.
 * They run real processes and use only the interface. Each implementation also has its own tests.
 */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { sleep } from '../base/async.ts';
import { newId } from '../base/ids.ts';
import { MIB } from '../base/limits.ts';
import { version } from '../base/version.ts';
import type { StreamName } from '../core/event.ts';
import type { Link, Node, NodeSink, SessionEnd, SessionFact, SessionView } from '../core/node.ts';
import type { Cleanup, Launch } from '../core/session.ts';
import { INNER, WRAPPER } from '../node/sessions/shell-scripts.ts';

export interface NodeUnderTest {
  node: Node;
  /** Closes this node and opens another on the same disk; agents keep running. */
  reopen(): Promise<Node>;
  close(): Promise<void>;
}

export interface NodeSuite {
  open(folder: string): Promise<NodeUnderTest>;
  /** What a stop can guarantee there. */
  cleanup: Cleanup;
  /** How much the tests of large input and output send. Absent: 16 MiB. */
  large_bytes?: number;
}

const WAIT_MS = 60_000;

/** Python: a detached child ignores TERM and continues in a second thread while its first one is a zombie. */
const MAIN_THREAD_ENDED = `import ctypes, os, signal, threading, time
EXIT_THREAD = {'x86_64': 60, 'aarch64': 93}[os.uname().machine]
def work():
    while ') Z' not in open('/proc/%d/stat' % os.getpid()).read():
        time.sleep(0.01)
    open('a', 'w').write(str(os.getpid()))
    time.sleep(1000)
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=work).start()
    ctypes.CDLL(None).syscall(EXIT_THREAD, 0)
time.sleep(1000)`;

/** Collects what a node reports. */
export class RecordingSink implements NodeSink {
  readonly facts: SessionFact[] = [];
  sessions: SessionView[] = [];
  unreadable: readonly string[] = [];

  async snapshot(sessions: SessionView[], _link: Link, unreadable: readonly string[]): Promise<void> {
    this.sessions = sessions;
    this.unreadable = unreadable;
    for (const session of sessions) this.facts.push(...session.facts);
  }

  fact(fact: SessionFact): void {
    this.facts.push(fact);
  }

  wake(): void {}

  eventsOf(session_id: string): SessionFact[] {
    return this.facts.filter((fact) => fact.session_id === session_id);
  }

  async ended(session_id: string): Promise<SessionEnd> {
    return until(() => {
      const body = this.eventsOf(session_id).find((fact) => fact.body.kind === 'ended')?.body;
      return body?.kind === 'ended' ? body.end : null;
    });
  }
}

/** Calls `probe` every 10 ms until it returns a value. Rejects after `WAIT_MS`. */
export async function until<T>(
  probe: () => T | null | false | undefined | Promise<T | null | false>,
): Promise<T> {
  const begun = performance.now();
  for (;;) {
    const found = await probe();
    if (found) return found;
    if (performance.now() - begun > WAIT_MS) throw new Error(`timed out after ${WAIT_MS / 1000} s`);
    await sleep(10);
  }
}

export function launchOf(workdir: string, argv: string[], more: Partial<Launch> = {}): Launch {
  return {
    session_id: newId('ses'),
    plane_id: 'pln_test',
    agent_id: 'agt_test',
    agent_name: 'test',
    owner_id: 'usr_test',
    workdir,
    argv,
    env: {},
    stdin: false,
    on_exit: 'kill',
    ...more,
  };
}

export async function readAll(node: Node, session_id: string, stream: StreamName): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for (let from = 0; ; ) {
    const bytes = await node.read(session_id, stream, from, MIB);
    if (bytes.length === 0) return Buffer.concat(parts);
    parts.push(bytes);
    from += bytes.length;
  }
}

/** Whether a process is alive. A zombie is not. */
export async function isPidAlive(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  if (process.platform !== 'linux') return true;
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const stats = threads.map((id) => readFile(`/proc/${pid}/task/${id}/stat`, 'latin1').catch(() => null));
  return (await Promise.all(stats)).some((stat) => stat !== null && !/\) [ZX]/.test(stat));
}

export function nodeSuite(name: string, suite: NodeSuite): void {
  const { large_bytes = 16 * MIB } = suite;
  describe(name, { timeout: 120_000 }, () => {
    let folder: string;
    let workdir: string;
    let under_test: NodeUnderTest;
    let node: Node;
    let sink: RecordingSink;
    let started: string[];

    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'svc-node-'));
      workdir = join(folder, 'work');
      await mkdir(workdir);
      under_test = await suite.open(join(folder, 'data'));
      node = under_test.node;
      sink = new RecordingSink();
      started = [];
      await node.attach(sink);
    });

    afterEach(async () => {
      for (const id of started) await node.stop(id, 0);
      for (const id of started) await sink.ended(id);
      await under_test.close();
      // The guard outlives the node and may still write its file.
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    }, 120_000);

    const start = async (argv: string[], more: Partial<Launch> = {}) => {
      const launch = launchOf(workdir, argv, more);
      started.push(launch.session_id);
      const view = await node.start(launch);
      return { id: launch.session_id, view };
    };
    const script = (text: string, more: Partial<Launch> = {}) => start(['/bin/sh', '-c', text], more);
    const js = (text: string, more: Partial<Launch> = {}) => start([process.execPath, '-e', text], more);
    const text = async (id: string, stream: StreamName = 'stdout') =>
      (await readAll(node, id, stream)).toString('latin1');
    const pidIn = (file: string) =>
      until(async () => Number(await readFile(join(workdir, file), 'utf8').catch(() => '')) || null);
    /** The process that a session leaves behind. It ends with the test, however that ends. */
    const keptPid = async () => {
      const pid = await pidIn('left');
      onTestFinished(() => {
        process.kill(pid, 'SIGKILL');
      });
      return pid;
    };
    const reattach = async () => {
      node = await under_test.reopen();
      sink = new RecordingSink();
      await node.attach(sink);
    };

    describe('output', () => {
      it('contains every byte of both streams, including a last line without newline', async () => {
        const { id } = await script("printf 'a\\nb\\000\\377 no newline'; printf 'to err' >&2");
        const end = await sink.ended(id);
        expect(await text(id)).toBe('a\nb\0\xff no newline');
        expect(await text(id, 'stderr')).toBe('to err');
        expect(end.sizes).toEqual({ stdout: 16, stderr: 6 });
        expect(end.exit).toEqual({ exit_code: 0, exit_signal: null, reason: null, message: null });
      });

      it('contains one line of many megabytes byte for byte', async () => {
        const chunk =
          'const c = Buffer.alloc(65536); for (let i = 0; i < c.length; i++) c[i] = 65 + (i % 50);';
        const chunks = large_bytes / 65_536;
        const write = `for (let i = 0; i < ${chunks}; i++) require('fs').writeSync(1, c)`;
        const { id } = await js(`${chunk} ${write}`);
        const end = await sink.ended(id);
        expect(end.sizes.stdout).toBe(large_bytes);
        const one = Buffer.alloc(65536);
        for (let i = 0; i < one.length; i++) one[i] = 65 + (i % 50);
        const expected = createHash('sha256');
        const actual = createHash('sha256');
        for (let i = 0; i < chunks; i++) expected.update(one);
        for (let from = 0; from < end.sizes.stdout; ) {
          const bytes = await node.read(id, 'stdout', from, MIB);
          actual.update(bytes);
          from += bytes.length;
        }
        expect(actual.digest('hex')).toBe(expected.digest('hex'));
      });

      it('is not truncated by writes to /dev/stderr and /dev/stdout', async () => {
        await writeFile(join(workdir, 'file'), 'copied\n');
        const { id } = await script(
          'echo one; echo x >/dev/stderr; echo y | tee /dev/stderr; cp file /dev/stdout; echo z >/dev/stdout; echo two',
        );
        await sink.ended(id);
        expect(await text(id)).toBe('one\ny\ncopied\nz\ntwo\n');
        expect(await text(id, 'stderr')).toBe('x\ny\n');
      });

      it('can be read from any offset, and is empty at its current end', async () => {
        const { id } = await script('printf 0123456789');
        await sink.ended(id);
        expect(Buffer.from(await node.read(id, 'stdout', 4, 3)).toString()).toBe('456');
        expect(await node.read(id, 'stdout', 10, 100)).toHaveLength(0);
        await expect(node.read(id, 'stdout', 11, 100)).rejects.toMatchObject({ code: 'output_lost' });
      });
    });

    describe('the end of a session', () => {
      it.each([
        [0, null],
        [3, 'exit_code'],
        [143, 'exit_code'],
        [255, 'exit_code'],
      ])('reports exit code %i', async (code, reason) => {
        const { id } = await script(`exit ${code}`);
        expect((await sink.ended(id)).exit).toEqual({
          exit_code: code,
          exit_signal: null,
          reason,
          message: null,
        });
      });

      it.each(['SIGTERM', 'SIGKILL', 'SIGINT', 'SIGSEGV', 'SIGUSR2'])(
        'distinguishes %s from an exit code',
        async (signal) => {
          const { id } = await js(`process.kill(process.pid, '${signal}'); setInterval(() => {}, 1000)`);
          expect((await sink.ended(id)).exit).toEqual({
            exit_code: null,
            exit_signal: signal,
            reason: 'signal',
            message: null,
          });
        },
      );

      it('is a failed spawn for a missing program', async () => {
        const { id, view } = await start(['no-such-program-here', 'x']);
        expect(view.phase).toBe('ended');
        const { exit } = await sink.ended(id);
        expect(exit).toMatchObject({ exit_code: null, reason: 'spawn_failed' });
        expect(exit.message).toContain('no-such-program-here: not found');
      });

      it('is a failed spawn for a program that is not executable', async () => {
        await writeFile(join(workdir, 'plain'), 'text');
        const { id, view } = await start([join(workdir, 'plain')]);
        expect(view.phase).toBe('ended');
        expect((await sink.ended(id)).exit).toMatchObject({ exit_code: null, reason: 'spawn_failed' });
      });

      it('is a failed spawn for a script without its interpreter', async () => {
        await writeFile(join(workdir, 'odd'), '#!/no/such/interpreter\n', { mode: 0o755 });
        const { id } = await start(['./odd']);
        const { exit } = await sink.ended(id);
        expect(exit).toMatchObject({ exit_code: null, reason: 'spawn_failed' });
        expect(exit.message).toContain('/no/such/interpreter');
      });

      it('has exit code 127 for a missing shell command', async () => {
        const { id } = await script('no-such-program-here');
        expect((await sink.ended(id)).exit).toMatchObject({ exit_code: 127, reason: 'exit_code' });
      });

      it('is workdir_refused if the workdir was replaced by a link', async () => {
        await mkdir(join(folder, 'elsewhere'));
        await rename(workdir, `${workdir}.moved`);
        await symlink(join(folder, 'elsewhere'), workdir);
        const { id, view } = await script('touch here');
        expect(view.phase).toBe('ended');
        expect((await sink.ended(id)).exit).toMatchObject({ exit_code: null, reason: 'workdir_refused' });
        await expect(readFile(join(folder, 'elsewhere', 'here'))).rejects.toThrow('ENOENT');
      });

      it('is workdir_refused if the workdir is missing', async () => {
        const { id } = await script('true', { workdir: join(folder, 'never') });
        expect((await sink.ended(id)).exit).toMatchObject({ reason: 'workdir_refused' });
      });

      it('kills the processes that the command left behind', async () => {
        const { id } = await script('sleep 1000 & echo $! >left; echo done');
        const pid = await pidIn('left');
        const end = await sink.ended(id);
        expect(end).toMatchObject({ leftovers: [], cleanup: suite.cleanup, sizes: { stdout: 5 } });
        expect(await isPidAlive(pid)).toBe(false);
      });

      it('keeps and lists the processes that the command left behind, on request', async () => {
        // The process has the command line of the shell until `exec`.
        const replaced = 'while grep -q echo /proc/$!/cmdline 2>/dev/null; do :; done';
        const { id } = await script(`(echo early; exec sleep 1000) & echo $! >left; ${replaced}; echo done`, {
          on_exit: 'keep',
        });
        const pid = await keptPid();
        const end = await sink.ended(id);
        expect(end.leftovers.map((left) => left.pid)).toEqual([pid]);
        expect(end.leftovers[0]?.command).toBe('sleep 1000');
        expect(end.exit.exit_code).toBe(0);
        expect((await text(id)).split('\n').sort()).toEqual(['', 'done', 'early']);
        expect(await isPidAlive(pid)).toBe(true);
      });

      it('does not block a kept process that continues to write, and its output does not grow the spool', async () => {
        const loop = 'i=0; while :; do i=$((i+1)); echo line $i; echo $i >count; done';
        const { id } = await script(`(${loop}) & echo $! >left; echo done`, { on_exit: 'keep' });
        await keptPid();
        const end = await sink.ended(id);
        const before = await pidIn('count');
        await until(async () => (await pidIn('count')) > before + 300);
        const size = (await readAll(node, id, 'stdout')).length;
        await until(async () => (await pidIn('count')) > before + 900);
        expect((await readAll(node, id, 'stdout')).length).toBe(size);
        expect(size).toBeGreaterThanOrEqual(end.sizes.stdout);
      });
    });

    it('removes the state of a deleted user, without following links, and keeps that of others', async () => {
      const state = join(folder, 'data/state');
      const outside = join(folder, 'outside');
      await mkdir(outside);
      await writeFile(join(outside, 'kept'), '');
      for (const user of ['usr_gone', 'usr_here']) {
        await mkdir(join(state, user, 'claude/.claude'), { recursive: true });
        await writeFile(join(state, user, 'claude/.claude/sign-in'), 'secret');
        await symlink(outside, join(state, user, 'claude/.claude/link'));
      }
      await symlink(outside, join(state, 'usr_link'));
      for (const user of ['usr_gone', 'usr_gone', 'usr_link', 'usr_none']) await node.forgetOwner(user);
      expect(await readdir(state)).toEqual(['usr_here']);
      expect(await readdir(outside)).toEqual(['kept']);
      for (const name of ['..', '', 'usr_here/claude', '.']) {
        await expect(node.forgetOwner(name)).rejects.toMatchObject({ kind: 'invalid' });
      }
      expect(await readFile(join(state, 'usr_here/claude/.claude/sign-in'), 'utf8')).toBe('secret');
    });

    describe('the data of a step', () => {
      const stepOutput = async (id: string, max = MIB) => {
        const bytes = await node.stepOutput(id, max);
        return bytes && Buffer.from(bytes).toString();
      };

      it('is a file to read and a file to write, which exist until the session is forgotten', async () => {
        const { id } = await script('cat "$SVC_STEP_INPUT" >"$SVC_STEP_OUTPUT"', { step_input: '{"a":"ä"}' });
        await sink.ended(id);
        expect(await stepOutput(id)).toBe('{"a":"ä"}');
        expect(await stepOutput(id, 3)).toBe('{"a');
        await reattach();
        expect(await stepOutput(id)).toBe('{"a":"ä"}');
        await node.forget(id);
        await expect(stepOutput(id)).rejects.toMatchObject({ code: 'session_not_found' });
        started = [];
      });

      it('is null if the agent wrote nothing, or left no regular file', async () => {
        for (const text of ['true', 'ln -s /etc/passwd "$SVC_STEP_OUTPUT"', 'mkfifo "$SVC_STEP_OUTPUT"']) {
          const { id } = await script(text, { step_input: '{}' });
          await sink.ended(id);
          expect(await stepOutput(id)).toBe(null);
        }
      });

      it('does not exist for a session without a step', async () => {
        const { id } = await script('env | grep -c SVC_STEP || true');
        await sink.ended(id);
        expect(await text(id)).toBe('0\n');
        expect(await stepOutput(id)).toBe(null);
      });
    });

    describe('what an agent sees', () => {
      it('is its workdir, its environment and three descriptors', async () => {
        const { id } = await js(
          `const fs = require('fs'); const out = {cwd: process.cwd(), a: process.env.A_VALUE, b: process.env['with space'],
            agent: process.env.SVC_AGENT_ID, session: process.env.SVC_SESSION_ID, fifo: fs.fstatSync(1).isFIFO(),
            scripts: Object.keys(process.env).filter((name) => name.startsWith('svc_'))};
           console.log(JSON.stringify(out))`,
          { env: { A_VALUE: "it's $HOME `x`\n2" } },
        );
        await sink.ended(id);
        expect(JSON.parse(await text(id))).toEqual({
          cwd: workdir,
          a: "it's $HOME `x`\n2",
          agent: 'agt_test',
          session: id,
          fifo: true,
          scripts: [],
        });
      });

      it('contains its variables unchanged, whatever the scripts call theirs', async () => {
        const names = new Set((WRAPPER + INNER).match(/\b[a-z_]+\b/g));
        const env = Object.fromEntries([...names].map((name) => [name, `my ${name}`]));
        // Without a slash, so that the program is searched.
        const { session_id } = await node.start(launchOf(workdir, ['env'], { env }));
        await sink.ended(session_id);
        const lines = new Set((await text(session_id)).split('\n'));
        expect(Object.entries(env).filter(([name, value]) => !lines.has(`${name}=${value}`))).toEqual([]);
      });

      it('contains no ignored or blocked signal', async () => {
        const { id } = await script('grep -E "Sig(Ign|Blk)" /proc/self/status || echo none');
        await sink.ended(id);
        for (const line of (await text(id)).trim().split('\n'))
          expect(line).toMatch(/none|0000000000000000$/);
      });

      it('contains no descriptor of the service', async () => {
        const { id } = await script(
          'for fd in 3 4 5 6 7 8 9; do (: <&$fd) 2>/dev/null && echo $fd; done; echo done',
        );
        await sink.ended(id);
        expect(await text(id)).toBe('done\n');
      });

      it('is an empty stdin by default, so that cat ends', async () => {
        const { id } = await script('cat; echo over');
        expect((await sink.ended(id)).exit.exit_code).toBe(0);
        expect(await text(id)).toBe('over\n');
      });

      it('excludes the helpers, even from a kill of its process group', async () => {
        const { id } = await script('trap "" TERM; kill -TERM 0; echo still; exit 4');
        expect((await sink.ended(id)).exit.exit_code).toBe(4);
        expect(await text(id)).toBe('still\n');
      });
    });

    describe('stdin', () => {
      it('arrives once and in order, even if it is sent again', async () => {
        const { id } = await script('cat', { stdin: true });
        expect(await node.input(id, 0, Buffer.from('hello '), false)).toBe(6);
        expect(await node.input(id, 0, Buffer.from('hello '), false)).toBe(6);
        expect(await node.input(id, 3, Buffer.from('lo world'), false)).toBe(11);
        await until(async () => (await text(id)) === 'hello world');
        expect(await node.input(id, 11, Buffer.from('!'), true)).toBe(12);
        expect((await sink.ended(id)).exit.exit_code).toBe(0);
        expect(await text(id)).toBe('hello world!');
      });

      it('rejects an offset beyond its end', async () => {
        const { id } = await script('cat', { stdin: true });
        await expect(node.input(id, 5, Buffer.from('x'), false)).rejects.toMatchObject({ code: 'stdin_gap' });
      });

      it('is rejected for an agent without stdin', async () => {
        const { id } = await script('sleep 1000');
        await expect(node.input(id, 0, Buffer.from('x'), false)).rejects.toThrow('agent has no stdin');
      });

      it('arrives completely at a slow reader, even many megabytes, and then ends', async () => {
        const data = Buffer.alloc(large_bytes / 2, 'abcdefghijklmnopqrstuvwxyz\n');
        const { id } = await script('sleep 0.3; cat | cat', { stdin: true });
        await node.input(id, 0, data, true);
        await sink.ended(id);
        expect((await readAll(node, id, 'stdout')).equals(data)).toBe(true);
      });

      it('stays open while nothing is sent, until the agent ends', async () => {
        const { id, view } = await script('head -n 1', { stdin: true });
        expect(view.phase).toBe('running');
        await node.input(id, 0, Buffer.from('one\ntwo\n'), false);
        expect((await sink.ended(id)).exit.exit_code).toBe(0);
        expect(await text(id)).toBe('one\n');
      });
    });

    describe('stop', () => {
      const trees: [string, string[]][] = [
        [
          'a shell that ignores TERM',
          ['/bin/sh', '-c', 'trap "" TERM; echo $$ >a; while :; do sleep 1; done'],
        ],
        [
          'sh that double-forks',
          [
            '/bin/sh',
            '-c',
            '(sh -c "echo \\$\\$ >a; trap \'\' TERM; while :; do sleep 1; done" &) ; sleep 1000',
          ],
        ],
        [
          'Node that starts a detached child',
          [
            process.execPath,
            '-e',
            `const c = require('child_process').spawn('sleep', ['1000'], {detached: true, stdio: 'ignore'});
             require('fs').writeFileSync('a', String(c.pid)); c.unref(); setInterval(() => {}, 1000)`,
          ],
        ],
        [
          'Node whose child detached with another stdout and its parent gone',
          [
            process.execPath,
            '-e',
            `require('child_process').spawn('/bin/sh', ['-c', 'sleep 1000 & echo $! >a'], {detached: true, stdio: 'ignore'});
             setInterval(() => {}, 1000)`,
          ],
        ],
        ['a detached process whose main thread has ended', ['python3', '-c', MAIN_THREAD_ENDED]],
        [
          'Python that daemonizes',
          [
            'python3',
            '-c',
            `import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open('a', 'w').write(str(os.getpid()))
        time.sleep(1000)
    os._exit(0)
time.sleep(1000)`,
          ],
        ],
      ];

      it.each(trees)('ends the tree of %s', async (_tree, argv) => {
        const { id } = await start(argv);
        const first = await Promise.race([pidIn('a'), sink.ended(id).then(() => null)]);
        // Without Python, there is nothing to stop.
        if (first === null) return expect((await sink.ended(id)).exit.message).toMatch(/python3/);
        expect(await node.stop(id, 300)).toEqual({ cleanup: suite.cleanup, survivors: [] });
        expect(await isPidAlive(first)).toBe(false);
        expect((await sink.ended(id)).cleanup).toBe(suite.cleanup);
      });

      it('ends a child that cleared its environment, left the session and closed everything', async () => {
        const { id } = await js(
          `const c = require('child_process').spawn('/bin/sh', ['-c', 'echo $$ >a; exec sleep 1000'],
             {detached: true, stdio: 'ignore', env: {}}); c.unref(); setInterval(() => {}, 1000)`,
        );
        const pid = await pidIn('a');
        expect(await node.stop(id, 300)).toEqual({ cleanup: suite.cleanup, survivors: [] });
        expect(await isPidAlive(pid)).toBe(false);
      });

      it('lets a program finish within the grace period', async () => {
        const { id } = await script('trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.05; done');
        await until(async () => (await text(id)) === 'up\n');
        await node.stop(id, 30_000);
        expect((await sink.ended(id)).exit.exit_code).toBe(0);
        expect(await text(id)).toBe('up\nbye\n');
      });

      it('lets the cleanup commands of a program, and their children, finish', async () => {
        const cleanUp = `sleep 0.3 && sh -c 'sleep 0.2 && (sleep 0.1 && echo clean) && exit 0'; exit $?`;
        const { id } = await script(`trap "${cleanUp}" TERM; echo up; while :; do sleep 0.05; done`);
        await until(async () => (await text(id)) === 'up\n');
        await node.stop(id, 30_000);
        expect((await sink.ended(id)).exit.exit_code).toBe(0);
        expect(await text(id)).toBe('up\nclean\n');
      });

      it('has the same result for concurrent calls, and again after the end', async () => {
        const { id } = await script('sleep 1000');
        const [one, two] = await Promise.all([node.stop(id, 1000), node.stop(id, 1000)]);
        expect(one).toEqual({ cleanup: suite.cleanup, survivors: [] });
        expect(two).toEqual(one);
        await sink.ended(id);
        expect(await node.stop(id, 0)).toEqual(one);
      });

      it('is rejected if the node closes, and can be repeated on the next node', async () => {
        const { id } = await script('trap "" TERM; echo up; while :; do sleep 0.05; done');
        await until(async () => (await text(id)) === 'up\n');
        const cut = node.stop(id, 30_000).then(
          () => 'stopped',
          (error) => error.kind,
        );
        await sleep(50);
        await reattach();
        expect(await cut).toBe('bad_gateway');
        expect(sink.sessions).toMatchObject([{ session_id: id, phase: 'running' }]);
        expect(await node.stop(id, 0)).toEqual({ cleanup: suite.cleanup, survivors: [] });
      });

      it('rejects an unknown session', async () => {
        await expect(node.stop('ses_unknown', 0)).rejects.toThrow('session not found');
      });

      it('wakes a stopped process', async () => {
        const { id } = await script(
          'trap "echo bye; exit 0" TERM; echo $$ >a; kill -STOP $$; sleep 1000 & wait',
        );
        const pid = await pidIn('a');
        await until(async () =>
          /\) T/.test(await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => ') T')),
        );
        await node.stop(id, 30_000);
        expect((await sink.ended(id)).exit.exit_code).toBe(0);
      });
    });

    describe('a session', () => {
      it('is one process, even after twenty starts with the same id', async () => {
        const launch = launchOf(workdir, ['/bin/sh', '-c', 'echo $$ >>pids; sleep 1000']);
        started.push(launch.session_id);
        const views = await Promise.all(Array.from({ length: 20 }, () => node.start(launch)));
        expect(new Set(views.map((view) => view.pid)).size).toBe(1);
        await until(async () => (await readFile(join(workdir, 'pids'), 'utf8').catch(() => '')) !== '');
        expect(await readFile(join(workdir, 'pids'), 'utf8')).toBe(`${views[0]?.pid}\n`);
        await node.start(launch);
        expect(await readFile(join(workdir, 'pids'), 'utf8')).toBe(`${views[0]?.pid}\n`);
      });

      it('keeps running and loses no output while the node is closed and reopened', async () => {
        const { id, view } = await script(
          'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done; exit 7',
        );
        await until(async () => (await text(id)).includes('line 10\n'));
        await reattach();
        expect(sink.sessions).toMatchObject([{ session_id: id, pid: view.pid }]);
        const end = await sink.ended(id);
        expect(end.exit.exit_code).toBe(7);
        const lines = Array.from({ length: 3000 }, (_, i) => `line ${i + 1}\n`).join('');
        expect(await text(id)).toBe(lines);
        expect(end.sizes.stdout).toBe(lines.length);
      });

      it('reports an unobserved end in the next snapshot, always with the same fact numbers', async () => {
        const { id } = await script('until [ -e go ]; do sleep 0.05; done; exit 5');
        await node.detach();
        await writeFile(join(workdir, 'go'), '');
        await reattach();
        expect((await sink.ended(id)).exit.exit_code).toBe(5);
        const facts = sink.eventsOf(id);
        expect(facts.map((fact) => fact.number)).toEqual([1, 2]);
        await reattach();
        expect(sink.eventsOf(id)).toEqual(facts);
      });

      it('can be forgotten once it has ended', async () => {
        const { id } = await script('until [ -e go ]; do sleep 0.05; done');
        await expect(node.forget(id)).rejects.toThrow('agent is running');
        await writeFile(join(workdir, 'go'), '');
        await sink.ended(id);
        await node.forget(id);
        await node.forget(id);
        started = [];
        await expect(node.read(id, 'stdout', 0, 1)).rejects.toThrow('session not found');
        await reattach();
        expect(sink.sessions).toEqual([]);
      });

      it('counts as live in the health report', async () => {
        await script('sleep 1000');
        const health = await node.health();
        expect(health.sessions_live).toBe(1);
        expect(health.disk.starts_allowed).toBe(true);
        expect(health.disk.free_bytes).toBeGreaterThan(0);
      });
    });

    describe('programs', () => {
      const question = { program: 'svc', version_argv: ['svc', '--version'], env: [], files: [] };

      it('include svc, which a probe finds as an agent does', async () => {
        const { id } = await script('command -v svc; svc --version');
        expect((await sink.ended(id)).exit.exit_code).toBe(0);
        const [path, printed] = (await text(id)).split('\n');
        expect(printed).toBe(version);
        const [found] = await node.probe([question]);
        expect(found).toEqual({ path, version, env_set: [], files_found: [] });
      });

      it('are reported in the order of the questions, variables by name only', async () => {
        const missing = { ...question, program: 'no-such-program', env: ['PATH', 'NO_SUCH_VARIABLE'] };
        const [none, sh] = await node.probe([missing, { ...question, program: 'sh', version_argv: ['sh'] }]);
        expect(none).toEqual({ path: null, version: null, env_set: ['PATH'], files_found: [] });
        expect(sh?.path).toMatch(/^\/.*\/sh$/);
        expect(await node.probe([])).toEqual([]);
      });

      it('are rejected if their names are invalid', async () => {
        const refusal = { kind: 'invalid', message: 'program must be a plain name' };
        await expect(node.probe([{ ...question, program: '/bin/sh' }])).rejects.toMatchObject(refusal);
      });
    });
  });
}
