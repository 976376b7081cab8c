/**
 * Programs in folders that a hostile agent may write to, which run with the rights of the service or which the agents of all
 * users run; and what agents left beside a data directory that was moved.
 */
import { existsSync } from 'node:fs';
import {
  chmod,
  chown,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Client } from '../../src/client/client.ts';
import type { Agent } from '../../src/features/agents/rules.ts';
import { AttackFixture, confinementMissing, confinements } from '../../src/testing/attack-fixture.ts';
import { TestPlane } from '../../src/testing/plane.ts';

const SECRET = 'a secret of the service, 71be';
const package_root = fileURLToPath(new URL('../..', import.meta.url));

describe.each(confinements.filter(({ remote }) => !remote))('with $name', (mode) => {
  const missing = confinementMissing(mode);
  const attack = test.skipIf(missing !== null);
  const note = missing === null ? '' : ` (needs ${missing})`;
  let fixture: AttackFixture;
  /** A folder of the operator, outside of the attack fixture. */
  let machine: string;

  beforeAll(async () => {
    if (missing !== null) return;
    const above = process.getuid?.() === 0 ? '/srv' : homedir();
    machine = await realpath(await mkdtemp(join(above, 'svc-programs-')));
    await chmod(machine, 0o755);
    fixture = await AttackFixture.open(mode);
  });
  afterAll(async () => {
    await fixture?.close();
    if (machine) await rm(machine, { recursive: true, force: true });
  });

  /** An installed package whose dependencies are elsewhere. */
  const install = async (folder: string): Promise<string> => {
    await mkdir(folder, { recursive: true });
    for (const name of ['bin', 'dist', 'package.json']) {
      await cp(join(package_root, name), join(folder, name), { recursive: true });
    }
    await symlink(await realpath(join(package_root, 'node_modules')), join(folder, 'node_modules'));
    return join(folder, 'bin/svc');
  };
  /** A service that is not started yet, with the same confinement as the fixture's. */
  const prepare = async (program: string, more: Record<string, string>): Promise<TestPlane> => {
    const { SVC_AGENTS_SANDBOX = 'none', SVC_AGENTS_RUN_AS = '' } = fixture.plane.env;
    const confined = { SVC_AGENTS_SANDBOX, SVC_AGENTS_RUN_AS, HOME: fixture.home };
    const plane = await TestPlane.prepare({ base: machine, program, env: { ...confined, ...more } });
    await chmod(plane.folder, 0o711);
    return plane;
  };
  const diagnosis = async (plane: TestPlane): Promise<string> => (await plane.cli(['doctor'])).stdout;

  if (mode.sandbox) {
    attack(`agents cannot write to the package of the service${note}`, async () => {
      const program = await install(join(machine, 'shared/svc'));
      const above = join(machine, 'shared');
      const plane = await prepare(program, { SVC_SAFE_PATHS: above });
      try {
        const why = `agents may write to ${above} and so change ${above}/svc, which the service runs`;
        await expect(plane.start()).rejects.toThrow(why);
        expect(await diagnosis(plane)).toContain(why);
        const writable = { SVC_SAFE_PATHS: plane.work, SVC_AGENTS_SANDBOX_WRITE: `${above}/svc/dist` };
        await expect(plane.start(writable)).rejects.toThrow('which the service runs');
        // Without a sandbox or another user, agents may do everything that the service may.
        await plane.start({ SVC_AGENTS_SANDBOX: 'none', SVC_AGENTS_RUN_AS: '' });
      } finally {
        await plane.close();
      }
    });

    attack(
      `agents cannot put programs into the PATH of others, at the start and at runtime${note}`,
      async () => {
        const tools = join(machine, 'tools');
        await mkdir(tools);
        const PATH = `${join(tools, 'bin')}:${process.env.PATH}`;
        await fixture.plane.kill('SIGTERM');
        const why = `agents may write to ${tools} and so put programs into ${tools}/bin`;
        await expect(fixture.plane.start({ PATH, SVC_SAFE_PATHS: tools })).rejects.toThrow(why);
        await fixture.plane.start({ PATH, SVC_SAFE_PATHS: '' });
        const change = (safe_paths: string[]) =>
          fixture.plane.client.call('updateConfig', { body: { safe_paths } });
        await expect(change([`${tools}/x/..`])).rejects.toThrow(why);
        await change([`${fixture.work}/`]);
        expect(await fixture.run('echo it runs')).toContain('it runs');
        await fixture.plane.kill('SIGTERM');
        await fixture.plane.start();
      },
    );

    attack(`repositories are not shown in place of worktrees${note}`, async () => {
      const trees = join(machine, 'trees');
      await mkdir(trees);
      const both = { SVC_WORKTREE_DEFAULT_ROOT: trees, SVC_WORKTREE_REPO_ROOTS: trees };
      await fixture.plane.kill('SIGTERM');
      await expect(fixture.plane.start(both)).rejects.toThrow(`agents.sandbox hides ${trees} from agents`);
      await fixture.plane.start();
    });
  }

  if (mode.run_as) {
    attack(`the agents' user cannot replace the package of the service${note}`, async () => {
      const operator_path = join(machine, 'theirs');
      const program = await install(join(operator_path, 'svc'));
      fixture.own(operator_path);
      await chown(join(operator_path, 'svc'), 0, 0);
      const plane = await prepare(program, {});
      try {
        const why = `agents.run_as cannot keep agents from changing ${operator_path}/svc, which the service runs`;
        await expect(plane.start()).rejects.toThrow(why);
        expect(await diagnosis(plane)).toContain(why);
      } finally {
        await plane.close();
      }
    });

    attack(`the service runs no program from a folder of the agents' user${note}`, async () => {
      const operator_bin = join(machine, 'bin');
      await mkdir(operator_bin);
      const names = [
        'uname',
        'readlink',
        'git',
        'setpriv',
        'getent',
        'test',
        'cat',
        'rm',
        'flock',
        'ps',
        'bwrap',
      ];
      for (const name of names) {
        // An agent's program may run, but only as the agents' user.
        const script = `#!/bin/sh\n[ "$(id -u)" != 0 ] || echo "${name} $*" >>${operator_bin}/ran\nPATH=/usr/bin:/bin exec ${name} "$@"\n`;
        await writeFile(join(operator_bin, name), script, { mode: 0o755 });
      }
      fixture.own(operator_bin);
      await fixture.plane.kill('SIGTERM');
      const PATH = `${operator_bin}:${process.env.PATH}`;
      await fixture.plane.start({ PATH });
      expect((await fixture.plane.cli(['doctor'], { env: { PATH } })).stdout).toContain('agents.run_as');
      const body = { name: 'x', node_id: 'main', worktree_mode: 'create_worktree', argv: ['true'] };
      const agent = (await fixture.alice.call('createAgent', {
        body: { ...body, start: true } as never,
      })) as Agent;
      await fixture.plane.finished(agent.id);
      await fixture.alice.call('deleteAgent', { params: { agent_id: agent.id } });
      expect(
        existsSync(join(operator_bin, 'ran')) ? await readFile(join(operator_bin, 'ran'), 'utf8') : '',
      ).toBe('');
      await fixture.plane.kill('SIGTERM');
      await fixture.plane.start();
    });
  }

  if (mode.run_as && mode.sandbox) {
    attack(`settings of others stay hidden after the data directory moves${note}`, async () => {
      // The agents' user has no home in the tests, so this creates what one of Bob's agents would leave.
      const beside = dirname(fixture.data_dir);
      const [state] = (await readdir(beside)).filter((name) => name.startsWith('svc-state-'));
      const left = join(beside, state!, `${fixture.user!.uid}`, 'usr_bob', 'claude/.claude');
      await mkdir(left, { recursive: true });
      for (const folder of [dirname(dirname(dirname(left))), dirname(dirname(left)), dirname(left)]) {
        await chmod(folder, 0o711);
      }
      await writeFile(join(left, 'note'), SECRET);
      fixture.own(left);
      await fixture.plane.kill('SIGTERM');
      const moved = `${fixture.data_dir}-moved`;
      await rename(fixture.data_dir, moved);
      await symlink(moved, fixture.data_dir);
      await fixture.plane.start({ SVC_DATA_DIR: moved });
      expect(await run(fixture.alice, `cat ${left}/note; ls -A ${left}`)).not.toMatch(/71be|^note$/m);
      await fixture.plane.kill('SIGTERM');
      await rm(fixture.data_dir);
      await rename(moved, fixture.data_dir);
      await fixture.plane.start();
      expect(await run(fixture.alice, `cat ${left}/note; ls -A ${left}`)).not.toMatch(/71be|^note$/m);
    });
  }

  const run = async (who: Client, command: string): Promise<string> => {
    const body = { name: 'x', node_id: fixture.node_id, workdir: fixture.work, command, start: true };
    const agent = await who.call('createAgent', { body });
    await fixture.plane.finished(agent.id);
    return fixture.outputOf(agent.id);
  };
});
