import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { ProgramQuestion } from '../../core/node.ts';
import { type TemporaryFolder, temporaryFolder } from '../../testing/repository.ts';
import { findUser, type RunAs } from '../confinement/run-as.ts';
import { limits } from '../limits.ts';
import { directExec, type Exec } from './exec.ts';
import { probe } from './program-probe.ts';

const as_root = process.platform === 'linux' && process.getuid?.() === 0;
let folder: TemporaryFolder;
let bin: string;
let home: string;

beforeEach(() => {
  folder = temporaryFolder();
  chmodSync(folder.path, 0o755);
  bin = join(folder.path, 'bin');
  home = join(folder.path, 'home');
  mkdirSync(bin);
  mkdirSync(home);
});
afterEach(() => folder.remove());

function script(path: string, text: string, mode = 0o755): string {
  writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode });
  return path;
}

function ask(program: string, more: Partial<ProgramQuestion> = {}): ProgramQuestion {
  return { program, version_argv: [program, '--version'], env: [], files: [], ...more };
}

interface Setting {
  exec?: Exec;
  env?: Record<string, string>;
  run_as?: RunAs | null;
}

function look(questions: ProgramQuestion[], { exec = directExec, env = {}, run_as = null }: Setting = {}) {
  const whole = { PATH: `${bin}:/usr/bin:/bin`, HOME: home, ...env };
  return probe(questions, { exec, env: whole, run_as, confinement: [] });
}

test('finds the first executable program on the PATH and its version', async () => {
  const later = join(folder.path, 'later');
  mkdirSync(later);
  mkdirSync(join(bin, 'agent'));
  script(join(bin, 'other'), 'echo 1', 0o644);
  const path = script(join(later, 'agent'), 'echo "$1 2.0 $PROOF"');
  script(join(later, 'other'), 'echo other; exit 0');
  const env = { PATH: `relative::${bin}:${later}`, PROOF: 'of its environment' };
  expect(await look([ask('agent'), ask('other'), ask('missing')], { env })).toEqual([
    { path, version: '--version 2.0 of its environment', env_set: [], files_found: [] },
    { path: join(later, 'other'), version: 'other', env_set: [], files_found: [] },
    { path: null, version: null, env_set: [], files_found: [] },
  ]);
});

test('a version is one short line of plain text, and may come from another program', async () => {
  const text = `\\n\\033[1m  v${'9'.repeat(500)}\\033[0m\\nmore\\n`;
  script(join(bin, 'loud'), `printf '${text}'`);
  script(join(bin, 'adapter'), 'exit 1');
  const [loud, adapter] = await look([
    ask('loud'),
    ask('adapter', { version_argv: ['loud', '-v'] }),
    ask('adapter', { version_argv: ['missing', '-v'] }),
  ]);
  expect(loud?.version).toMatch(/^v9+$/);
  expect(loud?.version).toHaveLength(sharedLimits.probe_version_chars_max);
  expect(adapter?.version).toBe(loud?.version);
});

test('finds a program without a version if it fails, hangs, prints nothing or cannot be started', async () => {
  script(join(bin, 'fails'), 'echo 1.0; exit 3');
  script(join(bin, 'hangs'), 'echo 1.0; sleep 1000');
  script(join(bin, 'mute'), 'cat; echo 1.0 >&2');
  writeFileSync(join(bin, 'broken'), '#!/no/such/interpreter\n', { mode: 0o755 });
  const impatient: Exec = { run: (argv, options) => directExec.run(argv, { ...options, timeout_ms: 200 }) };
  const questions = ['fails', 'mute', 'broken'].map((name) => ask(name));
  for (const { path, version } of await look(questions)) {
    expect(path).toMatch(bin);
    expect(version).toBeNull();
  }
  expect(await look([ask('hangs')], { exec: impatient })).toMatchObject([{ version: null }]);
});

test('reports only that variables and files exist', async () => {
  mkdirSync(join(home, '.agent'));
  writeFileSync(join(home, '.agent/auth.json'), 'secret');
  const question = ask('missing', {
    env: ['KEY', 'EMPTY', 'UNSET', 'toString'],
    files: ['.agent', '.agent/auth.json', '.agent/none'],
  });
  const env = { KEY: 'secret', EMPTY: '' };
  const [found] = await look([question], { env });
  expect(found).toMatchObject({ env_set: ['KEY'], files_found: ['.agent', '.agent/auth.json'] });
  expect(JSON.stringify(found)).not.toContain('secret');
  expect(await look([question], { env: { HOME: '' } })).toMatchObject([{ files_found: [] }]);
});

test('runs a few programs at a time', async () => {
  let running = 0;
  let most = 0;
  const counting: Exec = {
    run: async (argv, options) => {
      most = Math.max(most, ++running);
      const result = await directExec.run(argv, options);
      running -= 1;
      return result;
    },
  };
  const names = Array.from({ length: 12 }, (_, at) => `agent${at}`);
  for (const name of names) script(join(bin, name), `echo ${name}`);
  const found = await look(
    names.map((name) => ask(name)),
    { exec: counting },
  );
  expect(found.map(({ version }) => version)).toEqual(names);
  expect(most).toBe(limits.probe_parallel);
});

test('rejects invalid questions before it reads anything', async () => {
  const refused: [Partial<ProgramQuestion>, string][] = [
    [{ program: '../sh' }, 'program must be a plain name'],
    [{ program: '' }, 'program must be a plain name'],
    [{ program: '-c' }, 'program must be a plain name'],
    [{ version_argv: [] }, 'version_argv must begin with a plain name'],
    [{ version_argv: ['/bin/sh', '-c', 'true'] }, 'version_argv must begin with a plain name'],
    [{ files: ['/etc/passwd'] }, 'files must be below the home directory'],
    [{ files: ['a/../../b'] }, 'files must be below the home directory'],
    [{ files: ['a\0'] }, 'files must be below the home directory'],
    [{ env: Array(33).fill('A') }, 'env must have at most 32 entries'],
  ];
  for (const [more, message] of refused) await expect(look([ask('sh', more)])).rejects.toThrow(message);
  await expect(look(Array(65).fill(ask('sh')))).rejects.toThrow('programs must have at most 64 entries');
});

test.runIf(as_root)('runs programs as the agents’ user, and finds only what that user may run', async () => {
  const run_as = { ...(await findUser(directExec, 'nobody')), home };
  const closed = join(folder.path, 'closed');
  mkdirSync(closed, { mode: 0o700 });
  script(join(closed, 'agent'), 'echo closed');
  const env = { PATH: `${closed}:${bin}:/usr/bin:/bin` };
  expect(await look([ask('agent')], { env, run_as })).toMatchObject([{ path: null }]);
  const path = script(join(bin, 'agent'), 'id -u');
  expect(await look([ask('agent')], { env, run_as })).toMatchObject([{ path, version: String(run_as.uid) }]);
});
