/**
 * A folder worker: does jobs in folders that agents can write to, with no more rights than the agents. It is started
 * inside the sandbox, or as root and then gives that up. One JSON line a request on stdin, one an answer on stdout; it
 * keeps no state between jobs and ends with its stdin. A git that it started ends what it began.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Problem, problems } from '../../domain/problem.ts';
import { directExec } from '../exec.ts';
import { identify } from '../held-folder.ts';
import { lineOf } from '../launcher-wire.ts';
import { Git } from './git.ts';
import { type JobContext, type JobName, jobs } from './jobs.ts';
import type { WorkerAnswer, WorkerHello, WorkerRequest } from './worker-wire.ts';

let opened: Promise<JobContext> | null = null;
const lines = createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY });
lines.on('line', (line) => {
  if (opened === null) {
    opened = open(JSON.parse(line) as WorkerHello);
    // Every request answers with it.
    opened.catch(() => {});
  } else void serve(opened, JSON.parse(line) as WorkerRequest);
});
lines.on('close', () => process.exit(0));
process.stdout.on('error', () => process.exit(0));

async function open({
  places,
  ids,
  masks,
  entries,
  run_as,
  drop,
  env,
  repo_roots,
}: WorkerHello): Promise<JobContext> {
  if (drop && run_as) {
    // Node's types do not have it.
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
  return {
    exec: directExec,
    git: new Git({ exec: directExec, env, run_as, roots }),
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
