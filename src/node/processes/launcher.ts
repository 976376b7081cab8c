/**
 * The launcher is a small process that forks for the service, because a fork blocks the process that forks for longer the more
 * memory it has: 6 ms with 170 MiB, 17 ms with 370, 30 ms with 570. It also scans the process table. It reads one JSON request
 * per line on stdin and writes one answer per line to stdout. When stdin ends, it kills the programs that it is running, but not those that it spawned,
 * and exits. Environments and input come through the pipe, never in argv. The launcher keeps no state, so any request
 * may be sent again.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { closeInheritedDescriptors } from '../../base/descriptors.ts';
import { type ProcessRef, readStat } from '../../base/proc.ts';
import { directExec, killRunning } from './exec.ts';
import { type LauncherAnswer, type LauncherRequest, lineOf } from './launcher-wire.ts';
import { sweepTrees } from './process-tree.ts';

process.title = 'svc: launcher';
closeInheritedDescriptors();
const requests = createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY });
requests.on('line', (line) => {
  const request = parseRequest(line);
  if (request) void serve(request);
});
requests.on('close', exitLauncher);
process.stdout.on('error', exitLauncher);

function exitLauncher(): void {
  // A git command would otherwise wait forever for a writer of a FIFO that an agent left in its folder.
  killRunning();
  process.exit(0);
}

/** Null for a request that the service was killed while writing, which `readline` passes on before it closes. */
function parseRequest(line: string): LauncherRequest | null {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

async function serve(request: LauncherRequest): Promise<void> {
  let answer: LauncherAnswer;
  try {
    answer = { id: request.id, ok: await perform(request) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    answer = { id: request.id, error: { code: code ?? null, message } };
  }
  process.stdout.write(lineOf(answer));
}

async function perform(request: LauncherRequest): Promise<unknown> {
  switch (request.op) {
    case 'spawn':
      return await spawnDetached(request.argv, request.cwd, request.env);
    case 'sweep':
      return await sweepTrees(request.trees, request.owned);
    case 'run': {
      const result = await directExec.run(request.argv, {
        cwd: request.cwd,
        env: request.env,
        output_bytes_max: request.output_bytes_max,
        timeout_ms: request.timeout_ms,
        ...(request.stdin === null ? {} : { stdin: Buffer.from(request.stdin, 'base64') }),
      });
      return {
        ...result,
        stdout: result.stdout.toString('base64'),
        stderr: result.stderr.toString('base64'),
      };
    }
  }
}

/** Starts a program in a new session, without the launcher's descriptors. Resolves when the program has been loaded. */
function spawnDetached(
  argv: [string, ...string[]],
  cwd: string,
  env: Record<string, string>,
): Promise<ProcessRef> {
  return new Promise((resolve, reject) => {
    const [program, ...args] = argv;
    const child = spawn(program, args, { cwd, env, detached: true, stdio: 'ignore' });
    child.on('error', reject);
    child.on('spawn', () => {
      const pid = child.pid ?? 0;
      resolve({ pid, start: readStat(pid)?.start ?? '' });
    });
    child.unref();
  });
}
