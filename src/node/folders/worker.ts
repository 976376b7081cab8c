/**
 * A folder worker: runs jobs in folders that agents can write to, with no more rights than the agents. It is started
 * inside the sandbox, or as root and then changes its user. It reads one JSON request per line on stdin and writes one
 * answer per line to stdout. It keeps no state between jobs. When its stdin ends, it ends its running commands and then
 * exits.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { closeInheritedDescriptors } from '../../base/descriptors.ts';
import { Problem, problems } from '../../core/problem.ts';
import { identify } from '../confinement/held-folder.ts';
import { directExec, type Exec, killRunning } from '../processes/exec.ts';
import { lineOf } from '../processes/launcher-wire.ts';
import { Git } from './git.ts';
import { type JobContext, type JobName, jobs } from './jobs.ts';
import { MARK, type WorkerAnswer, type WorkerHello, type WorkerRequest } from './worker-wire.ts';

process.title = 'svc: folder worker';
closeInheritedDescriptors();
let opened: Promise<JobContext> | null = null;
const lines = createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY });
lines.on('line', (line) => {
  if (opened === null) {
    opened = open(JSON.parse(line) as WorkerHello);
    // Every request reports the error.
    opened.catch(() => {});
  } else void serve(opened, JSON.parse(line) as WorkerRequest);
});
lines.on('close', exitWorker);
process.stdout.on('error', exitWorker);

function exitWorker(): void {
  killRunning();
  process.exit(0);
}

async function open({
  places,
  ids,
  masks,
  entries,
  mark,
  run_as,
  drop,
  env,
  repo_roots,
}: WorkerHello): Promise<JobContext> {
  if (drop && run_as) {
    // Node's types omit this function.
    const { initgroups } = process as unknown as { initgroups(user: string, group: number): void };
    initgroups(run_as.name, run_as.gid);
    process.setgid!(run_as.gid);
    process.setuid!(run_as.uid);
  }
  const found = await Promise.all(places.map(identify));
  if (found.some((id, n) => id !== ids[n])) throw problems.workdirNotSafe();
  const expected = new Set(entries);
  for (const mask of masks) {
    const names = await readdir(mask).catch(() => []);
    if (names.some((name) => !expected.has(join(mask, name)))) throw problems.workdirNotSafe();
  }
  const roots = async () => repo_roots;
  const exec: Exec = {
    run: (argv, options) => directExec.run(argv, { ...options, env: { ...options.env, [MARK]: mark } }),
  };
  return {
    exec,
    git: new Git({ exec, env, run_as, roots, locks: false }),
    repo_roots: roots,
    confined: true,
  };
}

async function serve(context: Promise<JobContext>, { id, job, request }: WorkerRequest): Promise<void> {
  let answer: WorkerAnswer;
  try {
    const work = jobs[job as JobName] as (context: JobContext, request: unknown) => Promise<unknown>;
    answer = { id, ok: await work(await context, request) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    answer =
      error instanceof Problem
        ? { id, problem: { kind: error.kind, code: error.code, message } }
        : { id, failure: { code: code ?? null, message } };
  }
  process.stdout.write(lineOf(answer));
}
