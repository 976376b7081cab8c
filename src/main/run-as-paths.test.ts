import { chmod, chown, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findUser, type RunAs } from '../node/confinement/run-as.ts';
import { directExec, type Exec } from '../node/processes/exec.ts';
import { replaceablePath } from './run-as-paths.ts';

const possible = process.platform === 'linux' && process.getuid?.() === 0;
const asRoot = test.skipIf(!possible);

let root: string;
let nobody: RunAs;
beforeEach(async () => {
  if (!possible) return;
  nobody = await findUser(directExec, 'nobody');
  root = await realpath(await mkdtemp(join(tmpdir(), 'svc-paths-')));
  await chmod(root, 0o755);
  for (const name of ['theirs/data', 'open/data', 'sticky/data', 'ours/data', 'ours/theirs']) {
    await mkdir(join(root, name), { recursive: true, mode: 0o755 });
  }
  for (const name of ['theirs', 'ours/theirs']) await chown(join(root, name), nobody.uid, nobody.gid);
  await chmod(join(root, 'theirs'), 0o555);
  await chmod(join(root, 'open'), 0o777);
  await chmod(join(root, 'sticky'), 0o1777);
});
afterEach(async () => {
  if (possible) await rm(root, { recursive: true });
});

const at = (name: string) => join(root, name);
const problem = (...names: string[]) =>
  replaceablePath(directExec, nobody, { hidden: names.map(at), programs: [] });

asRoot(
  'accepts paths below folders that only root can change, and in a sticky folder (needs root)',
  async () => {
    expect(await problem('ours/data', 'sticky/data', 'ours/data/missing/file')).toBeNull();
  },
);

asRoot('rejects paths below a folder that agents own or may write to (needs root)', async () => {
  expect(await problem('ours/data', 'open/data')).toBe(
    `agents.run_as cannot keep ${at('open/data')} from agents, because nobody may change ${at('open')}: ` +
      `move ${at('open/data')} elsewhere, or make root the owner of ${at('open')} and close it to nobody`,
  );
  // The owner of a folder can always make it accessible.
  expect(await problem('theirs/data')).toContain(`nobody may change ${at('theirs')}:`);
  expect(await problem('open/data/not/there/yet')).toContain(`nobody may change ${at('open')}:`);
});

asRoot('rejects paths that agents own, also in a sticky folder (needs root)', async () => {
  expect(await problem('ours/theirs')).toContain(`nobody may change ${at('ours/theirs')}:`);
  await writeFile(at('sticky/log'), '');
  await chown(at('sticky/log'), nobody.uid, nobody.gid);
  expect(await problem('sticky/log')).toContain(`nobody may change ${at('sticky/log')}:`);
});

asRoot('rejects missing paths that agents may create, also in a sticky folder (needs root)', async () => {
  expect(await problem('sticky/certs')).toBe(
    `agents.run_as cannot keep ${at('sticky/certs')} from agents, because nobody may change ${at('sticky')}: ` +
      `move ${at('sticky/certs')} elsewhere, or make root the owner of ${at('sticky')} and close it to nobody`,
  );
  expect(await problem('open/certs')).toContain(`nobody may change ${at('open')}:`);
  expect(await problem('theirs/certs/more')).toContain(`nobody may change ${at('theirs')}:`);
  await symlink(at('sticky/certs'), at('ours/certs'));
  expect(await problem('ours/certs')).toContain(`nobody may change ${at('sticky')}:`);
  expect(await problem('sticky/data/certs')).toBeNull();
});

asRoot(
  'rejects programs that agents may change, or whose folder they may write to (needs root)',
  async () => {
    const program = (name: string) =>
      replaceablePath(directExec, nobody, { hidden: [], programs: [at(name)] });
    await writeFile(at('ours/tool'), '', { mode: 0o755 });
    expect(await program('ours')).toBeNull();
    expect(await program('ours/tool')).toBeNull();
    await chmod(at('ours/tool'), 0o777);
    expect(await program('ours/tool')).toBe(
      `agents.run_as cannot keep agents from changing ${at('ours/tool')}, which the service runs, because nobody may change ` +
        `${at('ours/tool')}: install it elsewhere, or make root the owner of ${at('ours/tool')} and close it to nobody`,
    );
    for (const name of ['open', 'sticky', 'theirs']) {
      expect(await program(name)).toContain(`nobody may change ${at(name)}:`);
    }
    expect(await program('open/data')).toContain(`nobody may change ${at('open')}:`);
  },
);

asRoot('rejects the answer of a shell that did not run (needs root)', async () => {
  const silent: Exec = {
    run: async (...call) => ({ ...(await directExec.run(...call)), stdout: Buffer.alloc(0) }),
  };
  await expect(replaceablePath(silent, nobody, { hidden: [at('open/data')], programs: [] })).rejects.toThrow(
    'cannot find out what nobody may change',
  );
});

asRoot('rejects a path through a link that agents may replace, wherever it leads (needs root)', async () => {
  await symlink(at('ours'), at('open/link'));
  await symlink('../open/link', at('ours/hop'));
  expect(await problem('open/link/data')).toContain(`nobody may change ${at('open')}:`);
  expect(await problem('ours/hop/data')).toContain(`nobody may change ${at('open')}:`);
});
