/**
 * A hostile agent against what the sandbox hides, on a machine that keeps changing: files are replaced, settings change, and
 * agents of other users run at the same time.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import {
  chmod,
  chown,
  cp,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sleep } from '../../src/base/async.ts';
import type { Client } from '../../src/client/client.ts';
import type { Agent } from '../../src/features/agents/rules.ts';
import {
  AttackFixture,
  attacksByTurns,
  confinementMissing,
  confinements,
} from '../../src/testing/attack-fixture.ts';
import { SVC } from '../../src/testing/plane.ts';

const SECRET = 'a secret of the service, sesame';

const modes = confinements.filter(({ sandbox }) => sandbox);

describe.each(modes)('with $name', (mode) => {
  const missing = confinementMissing(mode) ?? (mode.run_as ? mountsMissing() : null);
  /** For what only this mode has. */
  const attackHere = test.skipIf(missing !== null);
  const attack = mode.run_as && mountsMissing() !== null ? attackHere : attacksByTurns(modes, mode);
  const note = missing === null ? '' : ` (needs ${missing})`;
  let fixture: AttackFixture;
  /** A folder of the machine, outside of the attack fixture. */
  let machine: string;
  /** The home of the agents' user, or of the service's user. */
  let home: string;

  beforeAll(async () => {
    if (missing !== null) return;
    const above = process.getuid?.() === 0 ? '/srv' : homedir();
    machine = await realpath(await mkdtemp(join(above, 'svc-hidden-')));
    await chmod(machine, 0o755);
    for (const name of ['bin', 'home', 'svc', 'trees', 'other']) await mkdir(join(machine, name));
    await configure('trees');
    const more = {
      SVC_CONFIG: join(machine, 'svc/config.toml'),
      SVC_INTERNAL_GRPC_SECURITY_CERT_DIR: join(machine, 'svc/certs'),
      SVC_WORKTREE_DEFAULT_ROOT: '',
    };
    const at_home = mode.run_as ? await withHome(join(machine, 'bin'), join(machine, 'home')) : undefined;
    fixture = await AttackFixture.open(mode, more, at_home);
    home = mode.run_as ? join(machine, 'home') : fixture.home;
    if (fixture.user) await chown(home, fixture.user.uid, fixture.user.gid);
  });
  afterAll(async () => {
    await fixture?.close();
    if (machine) await rm(machine, { recursive: true, force: true });
  });

  /** Writes the configuration file. */
  const configure = (trees: string) =>
    writeFile(
      join(machine, 'svc/config.toml'),
      `# ${SECRET}\n[worktree]\ndefault_root = "${join(machine, trees)}"\n`,
    );
  /** Restarts the service that runs the agents. */
  const restart = async () => {
    const service = fixture.node ?? fixture.plane;
    await service.kill('SIGTERM');
    await service.start();
    await fixture.node?.linked();
    // The plane may not have noticed yet that the old link has ended.
    const params = { node_id: fixture.node_id };
    while (
      fixture.node &&
      (await fixture.plane.client.call('getAgentNodeHealth', { params })).status !== 'ok'
    ) {
      await sleep(20);
    }
  };

  const run = async (who: Client, command: string, more: Record<string, unknown> = {}): Promise<string> => {
    const agent = (await who.call('createAgent', {
      body: {
        ...{ name: 'x', node_id: fixture.node_id, workdir: fixture.work, command, start: true },
        ...more,
      } as never,
    })) as Agent;
    await fixture.plane.finished(agent.id);
    return fixture.outputOf(agent.id);
  };

  attack(`agents of different users share no settings or conversations${note}`, async () => {
    await mkdir(join(home, '.claude'));
    await writeFile(join(home, '.claude/.credentials.json'), 'the sign-in\n', { mode: 0o600 });
    fixture.own(join(home, '.claude'));
    const claude = { preset: 'claude', protocol: 'plain' };
    const hook = 'touch ~/.claude/note; sh ~/.claude/hook; cat ~/.claude/.credentials.json';
    await run(fixture.bob, `echo '${SECRET}' >~/.claude/note`, claude);
    const beside = dirname(fixture.data_dir);
    const kept = readdirSync(beside).filter((name) => name.startsWith('svc-state'));
    const paths = [join(fixture.data_dir, 'state'), ...kept.map((name) => join(beside, name))];
    const alice = `cat ~/.claude/note; echo 'echo obeyed' >~/.claude/hook; ls -AR ${paths.join(' ')}; cat ~/.claude/.cred*`;
    const output = await run(fixture.alice, alice, claude);
    expect(output).toContain('the sign-in');
    expect(output).not.toMatch(/sesame|claude$/m);
    const again = await run(fixture.bob, `${hook}; cat ~/.claude/note`, claude);
    expect(again).toContain(SECRET);
    expect(again).toContain('the sign-in');
    expect(again).not.toContain('obeyed');
  });

  attack(`an agent cannot read a world-readable configuration file${note}`, async () => {
    await chmod(join(machine, 'svc/config.toml'), 0o644);
    expect(await run(fixture.alice, `cat ${machine}/svc/config.toml`)).not.toContain('sesame');
  });

  attack(`a running agent does not see hidden files that are replaced${note}`, async () => {
    const svc = join(machine, 'svc');
    const certs = join(svc, 'certs');
    const script = `cat ${svc}/config.toml ${svc}/late.key ${certs}/*; ls -A ${svc} ${certs} ${certs}/*`;
    const spy = await fixture.start(`until [ -e go ]; do echo waiting; sleep 0.1; done; ${script}`);
    while (!(await fixture.outputOf(spy.id)).includes('waiting')) await sleep(20);
    await writeFile(join(svc, 'config.new'), await readFile(join(svc, 'config.toml')), { mode: 0o644 });
    await rename(join(svc, 'config.new'), join(svc, 'config.toml'));
    await rename(certs, `${certs}.old`);
    await cp(`${certs}.old`, certs, { recursive: true });
    await chmod(certs, 0o755);
    await writeFile(join(svc, 'late.key'), SECRET, { mode: 0o644 });
    await writeFile(join(fixture.work, 'go'), '');
    await fixture.plane.finished(spy.id);
    expect(await fixture.outputOf(spy.id)).not.toMatch(/sesame|BEGIN|\.pem$/m);
  });

  if (!mode.remote) {
    attackHere(
      `the plane warns at startup about files whose replacements agents would see${note}`,
      async () => {
        // In the folder that contains the repositories, which running agents see.
        const secret = join(dirname(fixture.repos), 'secret');
        await writeFile(secret, 'x'.repeat(64), { mode: 0o644 });
        await fixture.plane.kill('SIGTERM');
        await fixture.plane.start({ SVC_INTERNAL_GRPC_AUTH_SHARED_SECRET_FILE: secret });
        expect(fixture.plane.log).toContain(`if ${secret} is replaced, running agents see the new file`);
        expect(fixture.plane.log).not.toContain(`replaces ${machine}`);
        expect(await run(fixture.alice, `cat ${secret}`)).not.toContain('xxx');
      },
    );
  }

  if (mode.remote) {
    attackHere(`a worktree root from the registry gives others no access${note}`, async () => {
      const name = async (root: string | null) => {
        const params = { node_id: fixture.node_id };
        const record = { default_worktree_root: root };
        return fixture.plane.client.call('updateAgentNode', { params, body: record as never });
      };
      const create = async (): Promise<Agent> =>
        fixture.bob.call('createAgent', {
          body: {
            ...{ name: 'bob', node_id: fixture.node_id, worktree_mode: 'create_worktree' },
            ...{ command: `echo '${SECRET}' >note`, start: true },
          },
        });
      const shared = await name(await fixture.folder('shared'));
      expect(shared.worktree_root_problem).toContain('would be visible to other agents');
      await expect(create()).rejects.toThrow('would be visible to other agents');
      const apart = await name(join(machine, 'trees/inner'));
      expect(apart.worktree_root_problem).toBeNull();
      const bobs_agent = await create();
      await fixture.plane.finished(bobs_agent.id);
      expect(bobs_agent.workdir).toContain(join(machine, 'trees/inner'));
      const script = `cat ${bobs_agent.workdir}/note; ls -R ${machine}/trees`;
      expect(await run(fixture.alice, script)).not.toMatch(/sesame|^bob/m);
      await name(null);
    });
  }

  attack(`an agent that started before a root's first worktree cannot read it${note}`, async () => {
    await configure('later');
    await restart();
    const later = join(machine, 'later');
    const script = `ls ${later}; cat ${later}/*/note`;
    const spy = await fixture.start(`until [ -e seen ]; do echo waiting; sleep 0.1; done; ${script}`);
    while (!(await fixture.outputOf(spy.id)).includes('waiting')) await sleep(20);
    const bobs_agent = await fixture.bob.call('createAgent', {
      body: {
        ...{ name: 'bob', node_id: fixture.node_id, worktree_mode: 'create_worktree' },
        ...{ command: `echo '${SECRET}' >note`, start: true },
      },
    });
    await fixture.plane.finished(bobs_agent.id);
    expect(bobs_agent.workdir).toContain(later);
    await writeFile(join(fixture.work, 'seen'), '');
    await fixture.plane.finished(spy.id);
    expect(await fixture.outputOf(spy.id)).not.toMatch(/sesame|^bob/m);
    await configure('trees');
    await restart();
  });

  attack(`worktrees stay private after the root changes${note}`, async () => {
    const made = { ...{ workdir: undefined, worktree_mode: 'create_worktree' }, start: false };
    const bobs_agent = (await fixture.bob.call('createAgent', {
      body: {
        name: 'bob',
        node_id: fixture.node_id,
        command: `cat note; ls; echo '${SECRET}' >note`,
        ...made,
      } as never,
    })) as Agent;
    await fixture.bob.call('startAgent', { params: { agent_id: bobs_agent.id } });
    await fixture.plane.finished(bobs_agent.id);
    // Earlier releases kept no list of roots.
    await rm(join(fixture.data_dir, 'worktree-roots.json'));
    await restart();
    await configure('other');
    await restart();
    const script = `cat ${bobs_agent.workdir}/note; echo x >${bobs_agent.workdir}/planted; ls ${dirname(bobs_agent.workdir!)}`;
    expect(await run(fixture.alice, script)).not.toMatch(/sesame|^bob/m);
    const claim = fixture.alice.call('createAgent', {
      body: { name: 'x', node_id: fixture.node_id, command: 'ls', workdir: bobs_agent.workdir! },
    });
    await expect(claim).rejects.toThrow();
    // The owner's agent still works there.
    await fixture.bob.call('startAgent', { params: { agent_id: bobs_agent.id } });
    await fixture.plane.finished(bobs_agent.id);
    const output = await fixture.outputOf(bobs_agent.id);
    expect(output).toContain(SECRET);
    expect(output).not.toContain('planted');
  });
});

function mountsMissing(): string | null {
  return spawnSync('unshare', ['--mount', 'true']).status === 0 ? null : 'mount namespaces';
}

/** An `svc` for which the agents' user has a home, because it has its own /etc/passwd in a mount namespace. */
async function withHome(folder: string, home: string): Promise<string> {
  const users = await readFile('/etc/passwd', 'utf8');
  const passwd = join(folder, 'passwd');
  await writeFile(passwd, users.replace(/^(nobody:([^:]*:){4})[^:]*/m, `$1${home}`));
  const program = join(folder, 'svc');
  const script = `mount --bind '${passwd}' /etc/passwd && exec '${SVC}' "$@"`;
  const lines = [
    '#!/bin/sh',
    `exec unshare --mount /bin/sh -c '${script.replaceAll("'", "'\\''")}' svc "$@"`,
    '',
  ];
  await writeFile(program, lines.join('\n'), { mode: 0o755 });
  return program;
}
