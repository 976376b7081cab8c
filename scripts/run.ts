/** Runs a project's tool by argv and collects its output. For scripts. */
import { spawn } from 'node:child_process';
import { delimiter, join } from 'node:path';

export const root = join(import.meta.dirname, '..');
const tools = join(root, 'node_modules/.bin');

export interface Outcome {
  ok: boolean;
  output: string;
  seconds: number;
}

/**
 * `node` is the Node that runs the script. Other names are looked up among the project's tools first; a `stranger`
 * looks only where a machine without this project would find them. A run that takes longer than `timeout_ms` is
 * ended.
 */
export function run(
  argv: readonly [string, ...string[]],
  cwd = root,
  {
    stranger = false,
    timeout_ms = 0,
    env = {},
  }: { stranger?: boolean; timeout_ms?: number; env?: Record<string, string> | undefined } = {},
): Promise<Outcome> {
  const [name, ...args] = argv;
  const started = performance.now();
  return new Promise((resolve) => {
    const child = spawn(name === 'node' ? process.execPath : name, args, {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeout_ms,
      env: {
        ...process.env,
        ...env,
        PATH: stranger ? withoutTools() : `${tools}${delimiter}${process.env.PATH}`,
      },
    });
    let output = '';
    const add = (bytes: Buffer) => {
      output += bytes.toString();
    };
    child.stdout.on('data', add);
    child.stderr.on('data', add);
    const end = (ok: boolean) => resolve({ ok, output, seconds: (performance.now() - started) / 1000 });
    child.on('error', (error) => {
      output += error.message;
      end(false);
    });
    child.on('close', (code) => end(code === 0));
  });
}

function withoutTools(): string {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.filter((folder) => folder !== tools).join(delimiter);
}
