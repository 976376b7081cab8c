/** A hostile agent against the processes around it: the helpers of its session, folder workers, and what they inherit. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sleep } from '../../src/base/async.ts';
import { commandLine, isAlive, type ProcessStat, readAllStats } from '../../src/base/proc.ts';
import type { Agent } from '../../src/features/agents/rules.ts';
import { findCgroupParent } from '../../src/node/processes/cgroup.ts';
import { SessionFiles } from '../../src/node/sessions/session-files.ts';
import { AttackFixture, confinementMissing, confinements } from '../../src/testing/attack-fixture.ts';
import { SVC } from '../../src/testing/plane.ts';
import { makeRepository } from '../../src/testing/repository.ts';

const delegated = (await findCgroupParent()) !== null;
const SECRET = 'a secret of the service, sesame';

/** Attaches to the init of the sandbox and exits, so that init stays stopped. */
const HOLD_INIT = `perl -e 'syscall(${process.arch === 'arm64' ? 117 : 101}, 16, 1, 0, 0) == 0 or die "ptrace: $!";
  select(undef, undef, undef, 0.2); $| = 1; print "held\\n"'`;

/** Creates user, mount and cgroup namespaces with both system calls, and mounts the cgroups of the service. */
const CGROUPS = `perl -e '
  my ($unshare, $clone, $mount) = ${process.arch === 'arm64' ? '(97, 220, 40)' : '(272, 56, 165)'};
  my $flags = 0x10000000 | 0x20000 | 0x02000000; $| = 1;
  my $made = syscall($clone, $flags | 17, 0, 0, 0, 0);
  if ($made == 0) { print "cloned\n"; exit 0 }
  print "clone: $!\n" if $made < 0;
  waitpid($made, 0) if $made > 0;
  print "unshare: ", (syscall($unshare, $flags) == 0 ? "made" : $!), "\n";
  syscall($unshare, 0x10000000 | 0x20000);
  mkdir "/tmp/cgroup$_" for 1, 2;
  my ($none, @cgroup) = ("none", "cgroup2", "cgroup");
  for my $n (1, 2) {
    my ($at, $type, $options) = ("/tmp/cgroup$n", $cgroup[$n - 1], $n == 2 ? "pids" : "");
    syscall($mount, $none, $at, $type, 0, $options) == 0 and print "mounted $type\n";
  }'`;

const privileged = process.getuid?.() === 0;

/** Starts the service like a program that leaks descriptor 20, open on `/`, and like systemd, with shared mounts. */
const STARTER = `#!/bin/sh
exec ${privileged ? 'unshare --mount --propagation shared --' : ''} perl -MPOSIX -e 'POSIX::dup2(my $fd = POSIX::open("/"), 20); POSIX::close($fd); exec(@ARGV)' '${SVC}' "$@"
`;

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

describe.each(confinements.filter(({ remote }) => !remote))('with $name', (mode) => {
  const missing = confinementMissing(mode);
  const attack = test.skipIf(missing !== null);
  const sandboxed = (name: string, body: () => Promise<void>) => {
    if (mode.sandbox) attack(name, body);
  };
  let fixture: AttackFixture;
  let starter: string;

  beforeAll(async () => {
    if (missing !== null) return;
    starter = await mkdtemp(join(tmpdir(), 'svc-starter-'));
    await writeFile(join(starter, 'svc'), STARTER, { mode: 0o755 });
    fixture = await AttackFixture.open(mode, {}, join(starter, 'svc'));
    await writeFile(join(fixture.data_dir, 'hidden'), SECRET, { mode: 0o600 });
  });
  afterAll(async () => {
    await fixture?.close();
    if (starter) await rm(starter, { recursive: true });
  });

  sandboxed('an agent cannot mount the cgroups of the service', async () => {
    const output = await fixture.run(CGROUPS);
    expect(output.split('\n')).toEqual([
      'clone: Operation not permitted',
      'unshare: Operation not permitted',
      '',
    ]);
  });

  const stop = (agent: Agent) =>
    fixture.alice.call('stopAgent', { params: { agent_id: agent.id }, body: { grace_seconds: 0 } });
  const untilPrinted = async (agent: Agent, text: string) => {
    while (!(await fixture.outputOf(agent.id)).includes(text)) await sleep(20);
  };
  const handleOf = async (agent: Agent) =>
    new SessionFiles(join(fixture.data_dir, 'sessions', agent.session_id!)).readHandle()!;
  const sessionOf = async (agent: Agent) => {
    const params = { agent_id: agent.id };
    return ((await fixture.alice.call('listSessions', { params, query: {} })) as { cleanup: string }[])[0]!;
  };

  /** The arguments of a process, each followed by a null character; empty if it has ended. */
  const wholeCommand = (pid: number): string => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    } catch {
      return '';
    }
  };

  /** Gives a folder worker a job and returns its processes; with a sandbox, bubblewrap's two come first. */
  const worker = async (): Promise<ProcessStat[]> => {
    await fixture.alice.call('getChanges', { params: { agent_id: (await idle()).id } });
    const table = new Map(readAllStats().map((stat) => [stat.pid, stat]));
    const ways = [...table.values()]
      .filter(({ name, pid }) => name !== 'bwrap' && wholeCommand(pid).startsWith('svc: folder worker'))
      .map((stat) => {
        const way: ProcessStat[] = [];
        for (let at = stat; at; at = table.get(at.ppid)!) {
          if (at.pid === fixture.plane.pid) return way;
          way.unshift(at);
        }
        return [];
      });
    const found = ways.find((way) => way.length > 0) ?? [];
    expect(found).toHaveLength(mode.sandbox ? 3 : 1);
    return found;
  };
  let made: Promise<Agent> | undefined;
  const idle = () => {
    made ??= (async () => {
      const workdir = makeRepository(join(fixture.work, 'repository'), { 'a.txt': 'one\n' });
      fixture.own(workdir);
      const body = { name: 'idle', node_id: fixture.node_id, workdir, command: 'true' };
      return fixture.alice.call('createAgent', { body });
    })();
    return made;
  };

  attack('agents do not inherit the descriptors that the service inherited', async () => {
    const via = `/proc/self/fd/20/..${fixture.data_dir}`;
    const seen = await fixture.run(`ls /proc/self/fd/; cat ${via}/hidden; echo x >${via}/planted`);
    expect(seen).not.toContain('sesame');
    expect(seen).not.toMatch(/^20$/m);
    expect(existsSync(join(fixture.data_dir, 'planted'))).toBe(false);
    for (const pid of [fixture.plane.pid, ...(await worker()).map((stat) => stat.pid)]) {
      const folder = `/proc/${pid}/fd`;
      expect(readdirSync(folder).map((fd) => linkOf(join(folder, fd)))).not.toContain('/');
    }
  });

  sandboxed('an agent that stops its namespace’s init can still be ended', async () => {
    const [stopped, ending] = (await Promise.all([
      fixture.start(`${HOLD_INIT}; while :; do sleep 0.2; done`),
      fixture.start(`${HOLD_INIT}; exit 0`),
    ])) as [Agent, Agent];
    await Promise.all([untilPrinted(stopped, 'held'), untilPrinted(ending, 'held')]);
    const inits = (await Promise.all([stopped, ending].map(handleOf))).map(({ init }) => init!);
    // It is stopped a moment after the signal was sent.
    const states = () =>
      inits.map(({ pid }) => / \(bwrap\) (.) /.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]);
    await expect.poll(states).toEqual(['T', 'T']);
    await stop(stopped);
    expect(isAlive(inits[0]!)).toBe(false);
    for (const agent of [stopped, ending]) {
      await fixture.plane.finished(agent.id);
      expect(await sessionOf(agent)).toMatchObject({ cleanup: 'proven' });
    }
    expect(isAlive(inits[1]!)).toBe(false);
  });

  /** For attacks that a sandbox prevents in any case. */
  const unboxed = (name: string, body: () => Promise<void>) => {
    if (!mode.sandbox) attack(name, body);
  };

  unboxed('writing to another session’s control channel frees no process and starts no helpers', async () => {
    const flee =
      'exit if fork; setsid; exit if fork; %ENV = (); open STDIN, "</dev/null"; open $_, ">/dev/null" for *STDOUT, *STDERR; exec "sleep", "4242.5"';
    const agent = await fixture.start(`echo up; exec perl -MPOSIX -e '${flee}' & exec sleep 1000`);
    await untilPrinted(agent, 'up');
    const fled = () => readAllStats().filter((stat) => commandLine(stat) === 'sleep 4242.5');
    await expect.poll(fled).toHaveLength(1);
    const before = await handleOf(agent);
    const control = join(fixture.data_dir, 'sessions', agent.session_id!, 'pipes/ctl');
    await writeFile(control, 'nocgroup\nout\nerr\nfeed\n', { flag: 'a' });
    try {
      // The keeper works in order: once this pump is replaced, it has read the rest.
      process.kill(before.pumps.stdout.pid, 'SIGKILL');
      const pumps = async () => (await handleOf(agent)).pumps;
      await expect.poll(async () => (await pumps()).stdout.pid).not.toBe(before.pumps.stdout.pid);
      expect((await pumps()).stderr).toEqual(before.pumps.stderr);
      expect((await handleOf(agent)).no_cgroup).toBe(before.no_cgroup);
      await stop(agent);
      if (delegated) expect(fled()).toEqual([]);
    } finally {
      for (const { pid } of fled()) process.kill(pid, 'SIGKILL');
    }
  });

  attack('a signal opens no debugger in a folder worker', async () => {
    const { pid } = (await worker()).at(-1)!;
    const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1];
    expect(BigInt(`0x${caught}`) & (1n << BigInt(constants.signals.SIGUSR1 - 1))).toBe(0n);
  });

  sandboxed('a blocked folder worker ends with the service', async () => {
    const processes = await worker();
    process.kill(processes.at(-1)!.pid, 'SIGSTOP');
    await fixture.plane.kill('SIGKILL');
    try {
      await expect.poll(() => processes.filter(isAlive)).toEqual([]);
    } finally {
      await fixture.plane.start();
    }
  });

  if (privileged) {
    sandboxed(
      'file systems that the host mounts later appear neither for agents nor for folder workers',
      async () => {
        const later = join(fixture.repos, 'later');
        await mkdir(later);
        const agent = await fixture.start(
          `echo up; until [ -e go ]; do sleep 0.05; done; cat ${later}/file; echo x >${later}/mark; echo end`,
        );
        await untilPrinted(agent, 'up');
        const { pid } = (await worker()).at(-1)!;
        const host = (...argv: string[]) =>
          execFileSync('nsenter', ['--target', `${fixture.plane.pid}`, '--mount', '--', ...argv]).toString();
        host('mount', '-t', 'tmpfs', '-o', 'mode=1777', 'none', later);
        host('sh', '-c', `echo mounted later >${later}/file`);
        await writeFile(join(fixture.work, 'go'), '');
        await untilPrinted(agent, 'end');
        expect(await fixture.outputOf(agent.id)).not.toContain('mounted later');
        expect(host('ls', later)).toBe('file\n');
        expect(readFileSync(`/proc/${pid}/mountinfo`, 'utf8')).not.toContain(later);
      },
    );
  }

  sandboxed('neither agents nor folder workers can use the service’s kernel keys', async () => {
    const first = process.arch === 'arm64' ? 217 : 248;
    const call = `syscall(${first} + $_, $_ == 2 ? (0, -3, 0) : ($type, $name, 0, 0, 0))`;
    const program = `($type, $name) = ("user", "x"); for (0, 1, 2) { print ${call}, " ", $! + 0, "\\n" }`;
    expect(await fixture.run(['perl', '-e', program])).toBe('-1 1\n'.repeat(3));
    const { pid } = (await worker()).at(-1)!;
    expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/^Seccomp:\t2$/m);
  });
});
