/**
 * The tutorial on remote nodes, line by line, against the real program, with network namespaces as hosts. Only what a test
 * cannot do is replaced: the terminals, Ctrl-C, the location of the node's files, and the length of a minute. The test has
 * its own namespaces, so the addresses and names of the host do not change.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { firstOf } from '../src/testing/long.ts';
import { hasNamespaces, unshared } from '../src/testing/namespaces.ts';
import { endSessions, ROOT, SVC } from '../src/testing/plane.ts';
import { put, tutorialBlocks } from '../src/testing/tutorials.ts';

const MINUTE_S = Number(process.env.SVC_TEST_MINUTE_S ?? 3);
const TICKS = MINUTE_S + 5;

/** A folder and namespaces, with the processes that were started there. */
class Site {
  readonly folder: string;
  readonly #started = new Set<ChildProcess>();
  #holder!: ChildProcess;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async open(): Promise<Site> {
    const site = new Site(await realpath(await mkdtemp(join(tmpdir(), 'svc-tour-'))));
    await mkdir(join(site.folder, 'home'));
    site.#holder = spawn(...unshared('echo up && exec sleep 3600'), {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(site.#holder.stdout!, 'data');
    return site;
  }

  get data_dirs(): string[] {
    return [join(this.folder, 'home/.local/share/svc'), join(this.folder, 'far/data')];
  }

  /** A shell in the namespaces. Ends with the test. */
  begin(script: string): ChildProcess {
    const home = join(this.folder, 'home');
    const enter = ['-t', String(this.#holder.pid), '-n', '-m', `--wd=${home}`];
    const child = spawn('nsenter', [...enter, 'bash', '-euo', 'pipefail', '-c', script], {
      env: { PATH: `${dirname(SVC)}:${process.env.PATH}`, HOME: home, LANG: 'C.UTF-8' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#started.add(child);
    child.on('exit', () => this.#started.delete(child));
    return child;
  }

  async run(script: string): Promise<{ stdout: string; stderr: string }> {
    const child = this.begin(script);
    const ended = once(child, 'close');
    const [stdout, stderr] = await Promise.all([readAll(child.stdout!), readAll(child.stderr!)]);
    await ended;
    expect(child.exitCode, `${script}\n${stdout}\n${stderr}`).toBe(0);
    return { stdout, stderr };
  }

  /** Starts a service with `exec` and waits for a text in its log. */
  async serve(script: string, up: string): Promise<void> {
    const child = this.begin(`exec ${script.trim()} 2>&1`);
    let log = '';
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      log += text;
    });
    while (!log.includes(up)) {
      if (child.exitCode !== null) throw new Error(`${script}: ${log}`);
      await sleep(20);
    }
  }

  async close(): Promise<void> {
    for (const child of this.#started) {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
    for (const data_dir of this.data_dirs) await endSessions(data_dir);
    const ended = once(this.#holder, 'exit');
    this.#holder.kill('SIGKILL');
    await ended;
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

let site: Site | null = null;
afterEach(async () => {
  await site?.close();
  site = null;
});

test.runIf(hasNamespaces()).each(firstOf(1, ['mtls', 'tls']))(
  'the tutorial on remote nodes works as written in %s (needs ip netns)',
  async (mode) => {
    site = await Site.open();
    const [home, far] = site.data_dirs as [string, string];
    const [hosts, plane, node, register, cable, end, ...more] = await tutorialBlocks('remote-node');
    expect(more).toEqual([]);

    await site.run(hosts!);
    await site.serve(put(plane!, { 'npm start --': 'svc serve' }), '"plane started"');
    const { pin } = JSON.parse(await readFile(join(home, 'join.json'), 'utf8'));
    await site.run(`svc join --pin-file <(echo ${pin}) -u ${ROOT.username} <<< '${ROOT.password}'`);

    const [init, serve] = put(node!, { '/tmp/far': dirname(far) }).split('\n') as [string, string];
    await site.run(init);
    const configured = mode === 'tls' ? ' --set internal_grpc.security.mode=tls' : '';
    await site.serve(serve + configured, '"node started"');

    const [registered, tested, started, followed] = register!.split('\n') as [string, string, string, string];
    expect((await site.run(registered)).stdout).toMatch(/^status +connected$/m);
    expect((await site.run(tested)).stdout).toMatch(/^ok /m);
    await site.run(put(started, { 'seq 120': `seq ${TICKS}` }));
    const log = site.begin(put(followed, { 'svc logs': 'exec svc logs' }));
    let seen = '';
    log.stdout!.setEncoding('utf8').on('data', (text: string) => {
      seen += text;
    });
    while (!seen.includes('tick 1\n')) await sleep(20);

    const pulled = await site.run(put(cable!, { 'sleep 60': `sleep ${MINUTE_S}` }));
    expect(pulled.stdout).toMatch(MINUTE_S < 50 ? /^far\tfar\t/ : /^far\tfar\tunreachable\t/);

    const all = Array.from({ length: TICKS }, (_, i) => `tick ${i + 1}\n`).join('');
    expect((await site.run(end!)).stdout).toContain(all);
    while (seen.length < all.length) await sleep(20);
    expect(seen).toBe(all);
  },
);
