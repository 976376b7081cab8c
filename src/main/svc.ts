/**
 * The entry of `svc`: the world as it is, the command line, an exit code. The plane itself is loaded only to serve, and
 * with the demo agent nothing else.
 */
import { homedir } from 'node:os';
import type { Io } from '../cli/context.ts';
import { keepCompiled } from './compile-cache.ts';

keepCompiled(process.env);
const argv = process.argv.slice(2);
const run = argv[0] === 'demo-agent' ? await demoAgent() : await anyCommand();

const interrupted = new AbortController();
process.on('SIGINT', () => {
  // The first one asks, the second one insists.
  if (interrupted.signal.aborted) process.exit(130);
  interrupted.abort();
});
// A reader that has gone (`svc logs | head`) is told by the write itself.
process.stdout.on('error', () => {});
process.stderr.on('error', () => {});

const io: Io = {
  env: process.env,
  cwd: process.cwd(),
  home: homedir(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  signal: interrupted.signal,
};
const code = await run(io);
await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
process.exit(code);

async function anyCommand(): Promise<(io: Io) => Promise<number>> {
  const { runCli } = await import('../cli/main.ts');
  const { openLocal } = await import('./local.ts');
  return (io) => runCli(argv, { io, local: openLocal(io) });
}

async function demoAgent(): Promise<(io: Io) => Promise<number>> {
  const { runDemoAgent } = await import('../cli/demo-agent.ts');
  return (io) => runDemoAgent(argv, io);
}
