/** The entry of `svc`: the world as it is, the command line, an exit code. The plane itself is loaded only to serve. */
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';

enableCompileCache();
const { runCli } = await import('../cli/main.ts');
const { openLocal } = await import('./local.ts');

const interrupted = new AbortController();
process.on('SIGINT', () => {
  // The first one asks, the second one insists.
  if (interrupted.signal.aborted) process.exit(130);
  interrupted.abort();
});
// A reader that has gone (`svc logs | head`) is told by the write itself.
process.stdout.on('error', () => {});
process.stderr.on('error', () => {});

const io = {
  env: process.env,
  cwd: process.cwd(),
  home: homedir(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  signal: interrupted.signal,
};
const code = await runCli(process.argv.slice(2), { io, local: openLocal(io) });
await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
process.exit(code);
