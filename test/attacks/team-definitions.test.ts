/**
 * A hostile member of a team: a definition names a private worktree of another member, and the directories in which that
 * member's agents keep their state. Starting the run gives access to neither.
 */
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sleep } from '../../src/base/async.ts';
import { Client } from '../../src/client/client.ts';
import type { Scope } from '../../src/core/grant.ts';
import type { Run } from '../../src/features/runs/rules/run.ts';
import { AttackFixture, confinementMissing, confinements } from '../../src/testing/attack-fixture.ts';
import { makeRepository } from '../../src/testing/repository.ts';

const PRIVATE = 'a secret of bob, 51c9';
const modes = confinements.filter(({ sandbox, remote, run_as }) => sandbox && (run_as || !remote));

describe.each(modes)('with $name', (mode) => {
  const missing = confinementMissing(mode);
  const attack = test.skipIf(missing !== null);
  let fixture: AttackFixture;
  let repo: string;
  beforeAll(async () => {
    if (missing !== null) return;
    fixture = await AttackFixture.open(mode);
    repo = makeRepository(join(fixture.repos, 'shared'), { 'a.txt': 'one\n' });
    fixture.own(repo);
  });
  afterAll(() => fixture?.close());

  const agent = (client: Client, command: string, more: object) =>
    client.call('createAgent', {
      body: { name: 'own', node_id: fixture.node_id, command, start: true, ...more },
    });

  async function worktreeOf(client: Client): Promise<string> {
    const made = await agent(client, `echo '${PRIVATE}' >notes.txt`, {
      ...{ worktree_mode: 'create_worktree', worktree_repo: repo },
    });
    await fixture.plane.finished(made.id);
    return made.workdir;
  }

  const spec = (command: string, more: object) => ({
    members: [{ member_id: 'm', agent: { command, node_id: fixture.node_id, ...more } }],
    steps: [{ step_key: 's', member_id: 'm' }],
  });

  function teamOf(client: Client, name: string, spec: object, human_members: string[]) {
    return client.call('createTeam', { body: { name, human_members, spec: spec as never } });
  }

  async function ended(client: Client, team_id: string, run_id: string): Promise<Run> {
    for (;;) {
      const run = (await client.call('getRun', { params: { team_id, run_id } })) as Run;
      if (['completed', 'failed', 'canceled'].includes(run.status)) return run;
      await sleep(50);
    }
  }

  async function agentsOf(team_id: string) {
    const agents = await fixture.plane.client.call('listAgents', { query: { team_id } });
    return Array.isArray(agents) ? agents : agents.items;
  }

  /** Starts a run, waits for its end, and returns it with everything that the team's agents printed. */
  async function runOf(client: Client, team_id: string): Promise<{ run: Run; printed: string }> {
    const { id } = (await client.call('createRun', { params: { team_id }, body: { input: {} } })) as Run;
    const run = await ended(client, team_id, id);
    const outputs = (await agentsOf(team_id)).map((each) => fixture.outputOf(each.id));
    return { run, printed: (await Promise.all(outputs)).join('') };
  }

  attack('a definition cannot access a worktree of the user who starts the run', async () => {
    const workdir = await worktreeOf(fixture.bob);
    const definition = spec('cat notes.txt; echo planted >planted', { workdir });
    const team = await teamOf(fixture.alice, 'reach', definition, ['bob']);
    const { run, printed } = await runOf(fixture.bob, team.id);
    expect([run.status, printed]).toEqual(['failed', '']);
    expect(existsSync(join(workdir, 'planted'))).toBe(false);
  });

  attack('a token that is limited to a team cannot access a worktree of its user', async () => {
    const workdir = await worktreeOf(fixture.bob);
    const team = await teamOf(fixture.bob, 'limited', spec('true', { workdir }), []);
    const body = { name: 'deploy', scopes: ['read', 'operate', 'manage'] as Scope[], team_ids: [team.id] };
    const { token } = await fixture.bob.call('createToken', { body });
    const limited = new Client({ url: fixture.plane.url, token });
    const changed = spec('cat notes.txt; echo planted >planted', { workdir }) as never;
    await limited.call('updateTeam', { params: { team_id: team.id }, body: { spec: changed, version: 1 } });
    const { run, printed } = await runOf(limited, team.id);
    expect([run.status, printed]).toEqual(['failed', '']);
    expect(existsSync(join(workdir, 'planted'))).toBe(false);
  });

  attack('a changed definition gains no access when the owner of the worktree saves it again', async () => {
    const workdir = await worktreeOf(fixture.bob);
    const own = spec('cat notes.txt', { workdir });
    const team = await teamOf(fixture.bob, 'again', own, ['alice']);
    expect((await runOf(fixture.bob, team.id)).printed).toBe(`${PRIVATE}\n`);
    const update = (client: Client, version: number, spec: object, human_members = ['alice']) =>
      client.call('updateTeam', {
        params: { team_id: team.id },
        body: { spec: spec as never, human_members, version },
      });
    await update(fixture.alice, 1, spec('cat notes.txt; echo planted >planted', { workdir }));
    await update(fixture.bob, 2, spec('cat notes.txt; echo planted >planted ', { workdir }), []);
    expect((await runOf(fixture.bob, team.id)).run.status).toBe('failed');
    expect(existsSync(join(workdir, 'planted'))).toBe(false);
  });

  attack('an agent of a run of root cannot start in a worktree created there since', async () => {
    const workdir = join(dirname(await worktreeOf(fixture.alice)), 'reused');
    const own = { worktree_mode: 'create_worktree', worktree_repo: repo, workdir };
    const member = (member_id: string, command: string, more: object) => ({
      member_id,
      agent: { command, node_id: fixture.node_id, ...more },
    });
    const definition = {
      members: [
        member('first', 'echo own >notes.txt', own),
        member('second', 'cat notes.txt; exit 1', { workdir }),
      ],
      steps: [
        { step_key: 'a', member_id: 'first' },
        { step_key: 'b', member_id: 'second', depends_on: ['a'] },
      ],
    };
    const team = await teamOf(fixture.alice, 'root-run', definition, []);
    const { run, printed } = await runOf(fixture.plane.client, team.id);
    expect([run.status, printed]).toEqual(['failed', 'own\n']);
    const agents = await agentsOf(team.id);
    const idOf = (member_id: string) => agents.find(({ labels }) => labels.member === member_id)!.id;
    const [first, second] = [idOf('first'), idOf('second')];
    await fixture.plane.client.call('deleteAgent', {
      params: { agent_id: first },
      query: { delete_worktree: true, force: true },
    });
    const made = await agent(fixture.bob, `echo '${PRIVATE}' >notes.txt`, {
      ...{ worktree_mode: 'create_worktree', worktree_repo: repo, workdir },
    });
    await fixture.plane.finished(made.id);
    await fixture.alice.call('resumeRun', { params: { team_id: team.id, run_id: run.id } });
    await ended(fixture.plane.client, team.id, run.id);
    expect(await fixture.outputOf(second)).toBe('');
    const refused = () => fixture.plane.client.call('getAgent', { params: { agent_id: second } });
    expect(await refused()).toMatchObject({ reason: 'workdir_refused', session_count: 2 });
    // The agent outlives its team, and then is still not root's own.
    await fixture.alice.call('deleteTeam', { params: { team_id: team.id } });
    await fixture.plane.client.call('startAgent', { params: { agent_id: second } }).catch(() => {});
    await fixture.plane.finished(second);
    expect(await fixture.outputOf(second)).toBe('');
    expect(await refused()).toMatchObject({ reason: 'workdir_refused' });
  });

  // `nobody` has no home directory that an agent could keep state in.
  if (mode.run_as) return;
  attack('a definition cannot read settings and conversations of the user who starts the run', async () => {
    const read = 'cat ~/.claude/notes';
    const keep = `mkdir -p ~/.claude && echo '${PRIVATE}' >~/.claude/notes; ${read}`;
    const preset = { preset: 'claude', protocol: 'plain', workdir: fixture.work };
    const first = await agent(fixture.bob, keep, preset);
    await fixture.plane.finished(first.id);
    const team = await teamOf(
      fixture.alice,
      'state',
      spec(`${read}; echo mark >>~/.claude/mark; cat ~/.claude/mark`, preset),
      ['bob'],
    );
    expect((await runOf(fixture.bob, team.id)).printed).toMatch(/No such file.*\n|mark\n/);
    const again = await runOf(fixture.bob, team.id);
    expect(again.printed).not.toContain('51c9');
    // The team's agents find what they stored.
    expect(again.printed).toContain('mark\nmark\n');
    const second = await agent(fixture.bob, `${read}; ls ~/.claude`, preset);
    await fixture.plane.finished(second.id);
    const output = await fixture.outputOf(second.id);
    expect(output).toContain('51c9');
    expect(output).not.toContain('mark');
    const kept = () => readdirSync(join(fixture.data_dir, 'state')).filter((name) => name === team.id);
    expect(kept()).toEqual([team.id]);
    await fixture.alice.call('deleteTeam', { params: { team_id: team.id } });
    while (kept().length > 0) await sleep(20);
  });
});
