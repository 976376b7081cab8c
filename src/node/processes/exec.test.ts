import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { directExec } from './exec.ts';

const options = { cwd: '/', env: { PATH: '/usr/bin:/bin' }, output_bytes_max: 1_000, timeout_ms: 30_000 };

test('passes arguments unchanged, without a shell', async () => {
  const result = await directExec.run(['printf', '%s', '$(id); `id` "\n'], options);
  expect(result).toMatchObject({ code: 0, signal: null, truncated: false, timed_out: false });
  expect(result.stdout.toString()).toBe('$(id); `id` "\n');
});

test('returns both streams and the exit code, and passes stdin', async () => {
  const result = await directExec.run(['sh', '-c', 'cat; echo no >&2; exit 3'], {
    ...options,
    stdin: Buffer.from('yes'),
  });
  expect(result.code).toBe(3);
  expect(result.stdout.toString()).toBe('yes');
  expect(result.stderr.toString()).toBe('no\n');
});

test('inherits no environment variables', async () => {
  const result = await directExec.run(['env'], { ...options, env: { PATH: '/usr/bin:/bin', ONLY: 'this' } });
  expect(result.stdout.toString().trim().split('\n').sort()).toEqual(['ONLY=this', 'PATH=/usr/bin:/bin']);
});

test('truncates output at the limit and still waits for the end', async () => {
  const result = await directExec.run(['sh', '-c', 'yes | head -c 300000; exit 7'], options);
  expect(result).toMatchObject({ code: 7, truncated: true });
  expect(result.stdout.length).toBe(1_000);
});

test('ends a program and its children at the timeout', async () => {
  const result = await directExec.run(['sh', '-c', 'sleep 600 & echo $!; wait'], {
    ...options,
    timeout_ms: 500,
  });
  expect(result).toMatchObject({ code: null, signal: 'SIGKILL', timed_out: true });
  const child = Number(result.stdout.toString());
  // The process is dead, or in a container a zombie that no init reaps.
  const state = () => {
    try {
      return readFileSync(`/proc/${child}/stat`, 'utf8').split(') ')[1]?.[0];
    } catch {
      return 'gone';
    }
  };
  await expect.poll(state, { timeout: 20_000 }).toMatch(/gone|Z|X/);
});

test('does not wait for a remaining process that holds the pipes', async () => {
  const result = await directExec.run(['sh', '-c', 'sleep 600 & echo $!'], options);
  expect(result).toMatchObject({ code: 0, timed_out: false });
  process.kill(Number(result.stdout.toString()), 'SIGKILL');
});

test('rejects with the errno of a program that cannot be started', async () => {
  await expect(directExec.run(['/no/such/program'], options)).rejects.toMatchObject({ code: 'ENOENT' });
  await expect(directExec.run(['/etc/passwd'], options)).rejects.toMatchObject({ code: 'EACCES' });
});
