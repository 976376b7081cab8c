/**
 * The environment of the attack tests: the real program with confined agents, and two users, of whom alice is hostile. Its
 * folders are outside the system's temporary folder, which is empty in a sandbox.
 */
import { execFileSync } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { Client } from '../client/client.ts';
import type { Agent } from '../features/agents/rules.ts';
import { findUser, type RunAs } from '../node/confinement/run-as.ts';
import { directExec } from '../node/processes/exec.ts';
import { TestAgentNode, WITH_NODES } from './agent-node.ts';
import { firstOf, is_long } from './long.ts';
import { TestPlane } from './plane.ts';
import { sandboxMissing } from './sandbox.ts';

export interface Confined {
  run_as: boolean;
  sandbox: boolean;
  /** Agents run on a remote node instead of the plane's machine. */
  remote: boolean;
}

/**
 * Every confinement that the program offers, on the plane's machine and on a remote node. `npm test` tries each in one of the
 * two places.
 */
export const confinements: readonly (Confined & { name: string })[] = firstOf(3, [
  { run_as: true, sandbox: true, remote: false },
  { run_as: true, sandbox: false, remote: true },
  { run_as: false, sandbox: true, remote: true },
  { run_as: true, sandbox: false, remote: false },
  { run_as: false, sandbox: true, remote: false },
  { run_as: true, sandbox: true, remote: true },
]).map((mode) => ({ ...mode, name: nameOf(mode) }));

function nameOf({ run_as, sandbox, remote }: Confined): string {
  const modes = [...(run_as ? ['run_as'] : []), ...(sandbox ? ['sandbox'] : [])];
  return `${modes.join(' and ')}, ${remote ? 'on a node' : 'on the plane'}`;
}

/** What this machine lacks for the confinement, or null. */
export function confinementMissing({ run_as, sandbox }: Confined): string | null {
  if (process.platform !== 'linux') return 'Linux';
  if (run_as && process.getuid?.() !== 0) return 'root';
  return sandbox ? sandboxMissing() : null;
}

/**
 * Declares attacks on something that works the same in all `modes`. `npm run test:long` tries each of them in every mode, and
 * `npm test` tries each in one mode, by turns. Call it once for each mode, and declare the same attacks in the same order.
 */
export function attacksByTurns<M extends Confined>(modes: readonly M[], mode: M): typeof test.skip {
  const missing = confinementMissing(mode) !== null;
  const possible = modes.filter((one) => confinementMissing(one) === null);
  let declared = 0;
  return ((...args: Parameters<typeof test.skip>) => {
    const is_turn = missing || possible[declared++ % possible.length] === mode;
    if (is_long || is_turn) test.skipIf(missing)(...args);
  }) as typeof test.skip;
}

export class AttackFixture {
  readonly plane: TestPlane;
  readonly node: TestAgentNode | null;
  /** The data directory on the machine on which agents run. */
  readonly data_dir: string;
  /** A safe path on that machine, which the agents' user owns. */
  readonly work: string;
  /** The folder for repositories of worktrees. Agents can write only to git's objects and refs in them. */
  readonly repos: string;
  readonly home: string;
  /** A folder for repositories in the home directory, which a sandbox hides. */
  readonly home_repos: string;
  readonly user: RunAs | null;
  readonly alice: Client;
  readonly bob: Client;
  readonly #base: string;

  private constructor(
    parts: Pick<AttackFixture, 'plane' | 'node' | 'repos' | 'home' | 'user' | 'alice' | 'bob'> & {
      base: string;
    },
  ) {
    this.plane = parts.plane;
    this.node = parts.node;
    this.data_dir = (parts.node ?? parts.plane).data_dir;
    this.work = (parts.node ?? parts.plane).work;
    this.repos = parts.repos;
    this.home = parts.home;
    this.home_repos = homeRepos(parts.home);
    this.user = parts.user;
    this.alice = parts.alice;
    this.bob = parts.bob;
    this.#base = parts.base;
  }

  /** `more`: environment variables of the process that starts agents. `program`: the `svc` to run, if not this source tree's. */
  static async open(
    mode: Confined,
    more: Record<string, string> = {},
    program?: string,
  ): Promise<AttackFixture> {
    const parent = process.getuid?.() === 0 ? '/srv' : homedir();
    const base = await realpath(await mkdtemp(join(parent, 'svc-attacks-')));
    await chmod(base, 0o711);
    const user = mode.run_as ? await findUser(directExec, 'nobody') : null;
    const [repos, home, runtime, worktrees] = (await Promise.all(
      ['repos', 'home', 'run', 'trees'].map(async (name) => {
        await mkdir(join(base, name), { mode: 0o755 });
        return join(base, name);
      }),
    )) as [string, string, string, string];
    await mkdir(homeRepos(home), { mode: 0o755 });
    const confined = {
      HOME: home,
      RUNTIME_DIRECTORY: runtime,
      SVC_WORKTREE_REPO_ROOTS: `${repos},${homeRepos(home)}`,
      ...(mode.sandbox && { SVC_AGENTS_SANDBOX: 'bwrap' }),
      ...(mode.run_as && { SVC_AGENTS_RUN_AS: 'nobody' }),
      SVC_WORKTREE_DEFAULT_ROOT: worktrees,
      ...more,
    };
    const env = { ...WITH_NODES, ...(mode.remote ? {} : confined) };
    const plane = await TestPlane.prepare({ base, env, ...(program !== undefined && { program }) });
    await chmod(plane.folder, 0o711);
    await plane.start();
    await plane.join();
    let node: TestAgentNode | null = null;
    if (mode.remote) {
      node = await TestAgentNode.prepare(plane, {
        base,
        env: confined,
        ...(program !== undefined && { program }),
      });
      await chmod(node.folder, 0o711);
      await node.start(await node.token());
      await node.register();
      await node.linked();
    }
    const { work } = node ?? plane;
    if (user) await chown(work, user.uid, user.gid);
    const [alice, bob] = [await addUser(plane, 'alice'), await addUser(plane, 'bob')];
    return new AttackFixture({ plane, node, repos, home, user, alice, bob, base });
  }

  get node_id(): string {
    return this.node?.id ?? 'main';
  }

  /** Creates a folder in the safe path that belongs to the agents' user. */
  async folder(name: string): Promise<string> {
    const path = join(this.work, name);
    await mkdir(path);
    this.own(path);
    return path;
  }

  /** Makes the agents' user the owner of a folder and its contents. */
  own(folder: string): void {
    if (!this.user) return;
    execFileSync('chown', ['-R', `${this.user.uid}:${this.user.gid}`, folder]);
  }

  /** Starts one of alice's agents. */
  start(
    command: string | string[],
    more: { workdir?: string; env?: Record<string, string> } = {},
  ): Promise<Agent> {
    return this.alice.call('createAgent', {
      body: {
        ...{ name: 'attacker', node_id: this.node_id, workdir: this.work, start: true },
        ...(typeof command === 'string' ? { command } : { argv: command }),
        ...more,
      },
    });
  }

  /** Runs a command as one of alice's agents until it exits, and returns its output. */
  async run(command: string | string[], more: Parameters<AttackFixture['start']>[1] = {}): Promise<string> {
    const agent = await this.start(command, more);
    await this.plane.finished(agent.id);
    return this.outputOf(agent.id);
  }

  /** The agent's stdout, followed by its stderr. */
  async outputOf(agent_id: string): Promise<string> {
    const [out, err] = await Promise.all(
      (['stdout', 'stderr'] as const).map((stream) => this.plane.output(agent_id, { stream })),
    );
    return `${out}${err}`;
  }

  async close(): Promise<void> {
    await this.node?.close();
    await this.plane.close();
    await rm(this.#base, { recursive: true, force: true, maxRetries: 5 });
  }
}

function homeRepos(home: string): string {
  return join(home, 'code');
}

async function addUser(plane: TestPlane, username: string): Promise<Client> {
  const password = `a long password of ${username}`;
  await plane.client.call('createUser', { body: { username, password, role: 'user' } });
  const { token } = await new Client({ url: plane.url, token: null }).call('login', {
    body: { username, password },
  });
  return new Client({ url: plane.url, token });
}
