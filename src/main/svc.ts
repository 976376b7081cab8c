/**
 * The entry point of `svc`: connects the command line to the real environment and returns its exit code. The plane is
 * loaded only for `serve`, and `demo-agent` loads nothing else.
 */
import { homedir } from 'node:os';
import type { Io } from '../cli/context.ts';
import { setUpCompileCache } from './compile-cache.ts';

setUpCompileCache(process.env);
const argv = process.argv.slice(2);
const run = argv[0] === 'demo-agent' ? await demoAgent() : await anyCommand();

const interrupted = new AbortController();
process.on('SIGINT', () => {
  // The first signal requests a shutdown, the second one forces it.
  if (interrupted.signal.aborted) process.exit(130);
  interrupted.abort();
});
// The write itself reports that the reader has exited (`svc logs | head`).
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
  const { localOperations } = await import('./local-operations.ts');
  return (io) => runCli(argv, { io, local: localOperations(io) });
}

async function demoAgent(): Promise<(io: Io) => Promise<number>> {
  const { runDemoAgent } = await import('../cli/demo-agent.ts');
  return (io) => runDemoAgent(argv, io);
}
