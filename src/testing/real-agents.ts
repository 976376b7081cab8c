/**
 * Real coding agents for the tests that are run on demand (`npm run test:agents`): each is installed by npm into a folder
 * of its own, from whatever registry the environment has, and speaks to the scripted model.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const INSTALL_MS = 10 * 60_000;

export const realAgents = {
  qwen: { spec: '@qwen-code/qwen-code@0.15.10', program: 'qwen', args: ['--acp'] },
  opencode: { spec: 'opencode-ai@1.18.33', program: 'opencode', args: ['acp'] },
} as const;
export type RealAgentName = keyof typeof realAgents;

export interface RealAgent {
  argv: [string, ...string[]];
  /** The environment to start it in. */
  env: Record<string, string>;
  remove(): Promise<void>;
}

/** Rejects with npm's words when it cannot be installed. */
export async function installAgent(name: RealAgentName): Promise<RealAgent> {
  const { spec, program, args } = realAgents[name];
  const folder = await realpath(await mkdtemp(join(tmpdir(), `svc-${name}-`)));
  const remove = () => rm(folder, { recursive: true, force: true, maxRetries: 5 });
  try {
    const install = ['install', '--prefix', folder, '--no-save', '--no-audit', '--no-fund', spec];
    await execute('npm', install, { cwd: folder, timeout: INSTALL_MS });
    return {
      argv: [join(folder, 'node_modules/.bin', program), ...args],
      env: strangersEnvironment(),
      remove,
    };
  } catch (error) {
    await remove();
    throw new Error(`${spec} cannot be installed: ${(error as { stderr?: string }).stderr ?? error}`);
  }
}

/** As a person has it: npm puts the project's own Node first, which not every agent is made for. */
function strangersEnvironment(): Record<string, string> {
  const { PATH = '', ...rest } = process.env as Record<string, string>;
  const folders = PATH.split(delimiter).filter((folder) => !folder.includes('node_modules'));
  const kept = Object.entries(rest).filter(
    ([name]) => !name.startsWith('npm_') && !name.startsWith('VITEST'),
  );
  return { ...Object.fromEntries(kept), PATH: folders.join(delimiter) };
}
