import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { MIB } from '../../base/limits.ts';
import { isAlive, readStat } from '../../base/proc.ts';
import { until } from '../../testing/node-suite.ts';
import { Launcher } from './launcher-client.ts';
import { type LauncherRequest, lineOf } from './launcher-wire.ts';

const options = { cwd: '/', env: { PATH: '/usr/bin:/bin' }, output_bytes_max: 8 * MIB, timeout_ms: 60_000 };

test('repeats a request if the launcher dies while answering it', { timeout: 60_000 }, async () => {
  const launcher = new Launcher();
  const asked = launcher.run(['/bin/sh', '-c', 'head -c 4194304 /dev/zero'], options);
  const { pid } = launcher;
  // Nothing reads the answer, which is longer than the pipe's buffer, so the launcher blocks.
  const buffer = new Int32Array(new SharedArrayBuffer(4));
  Atomics.wait(buffer, 0, 0, 2_000);
  process.kill(pid!, 'SIGKILL');
  const { code, stdout } = await asked;
  expect(code).toBe(0);
  expect(stdout.length).toBe(4 * MIB);
  expect(launcher.pid).not.toBe(pid);
  launcher.close();
});

test('passes Unicode line separators to the launcher and back', async () => {
  const launcher = new Launcher();
  const odd = 'a\u2028b\u2029c';
  const { stdout } = await launcher.run(['/bin/sh', '-c', 'printf %s "$1$ODD"', 'sh', odd], {
    ...options,
    env: { ...options.env, ODD: odd },
  });
  expect(stdout.toString()).toBe(odd + odd);
  const { pid } = launcher;
  await expect(launcher.spawn([`/no/${odd}`], '/', {})).rejects.toThrow(odd);
  expect(launcher.pid).toBe(pid);
  await launcher.close();
});

test('kills running programs when the service ends, but not spawned processes', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-launcher-'));
  const launcher = new Launcher();
  const spawned = await launcher.spawn(['/bin/sleep', '1000'], '/', {});
  const file = join(folder, 'pid');
  launcher.run(['/bin/sh', '-c', `echo $$ >${file}; sleep 1000; true`], options).catch(() => {});
  const pid = await until(async () => Number(await readFile(file, 'utf8').catch(() => '')) || null);
  await launcher.close();
  await until(() => !readStat(pid));
  expect(isAlive(spawned)).toBe(true);
  process.kill(spawned.pid, 'SIGKILL');
  await rm(folder, { recursive: true });
});

test('kills running programs when the service is killed while it writes a request', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-launcher-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const entry = fileURLToPath(new URL('./launcher.ts', import.meta.url));
  const launcher = spawn(process.execPath, [entry], { stdio: ['pipe', 'ignore', 'ignore'] });
  const ended = once(launcher, 'exit');
  const file = join(folder, 'pid');
  const argv: [string, ...string[]] = ['/bin/sh', '-c', `echo $$ >${file}; sleep 1000; true`];
  const line = lineOf({ id: 1, op: 'run', argv, stdin: null, ...options } satisfies LauncherRequest);
  launcher.stdin.write(line);
  const pid = await until(async () => Number(await readFile(file, 'utf8').catch(() => '')) || null);
  launcher.stdin.end(line.slice(0, -20));
  expect(await ended).toEqual([0, null]);
  await until(() => !readStat(pid));
});

test('replaces a launcher that does not answer a scan request', { timeout: 120_000 }, async () => {
  const launcher = new Launcher({ answer_ms: 5_000 });
  await launcher.run(['/bin/sh', '-c', 'true'], options);
  const { pid } = launcher;
  process.kill(pid!, 'SIGSTOP');
  const ref = await launcher.spawn(['/bin/sh', '-c', 'true'], '/', {});
  expect(ref.pid).toBeGreaterThan(0);
  expect(launcher.pid).not.toBe(pid);
  await until(() => !readStat(pid!));
  launcher.close();
});

/** Uses up all descriptors, sends a request, frees them, and sends another request. */
const STARVING = `
  import { closeSync, openSync } from 'node:fs';
  const { Launcher } = await import(process.argv[1]);
  const launcher = new Launcher();
  const held = [];
  try {
    for (;;) held.push(openSync('/dev/null', 'r'));
  } catch {}
  const said = [await launcher.spawn(['/bin/sh', '-c', 'true'], '/', {}).catch((error) => error.code)];
  for (const fd of held) closeSync(fd);
  said.push((await launcher.spawn(['/bin/sh', '-c', 'true'], '/', {})).pid > 0);
  console.log(JSON.stringify(said));
  launcher.close();
`;

test('rejects a request while no descriptors are free, and serves the next one', {
  timeout: 60_000,
}, async () => {
  const entry = fileURLToPath(new URL('./launcher-client.ts', import.meta.url));
  const child = spawn(
    '/bin/sh',
    ['-c', 'ulimit -n 256; exec "$@"', 'sh', process.execPath, '--input-type=module', '-e', STARVING, entry],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  let said = '';
  child.stdout.on('data', (text: Buffer) => {
    said += text;
  });
  await new Promise((resolve) => child.on('close', resolve));
  expect(JSON.parse(said)).toEqual(['EMFILE', true]);
});
