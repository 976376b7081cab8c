/**
 * Real coding agents for tests that run on demand (`npm run test:agents`). npm installs each in a separate folder, from the
 * configured registry. They use the scripted model.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { findPreset } from '../features/presets/rules/catalog.ts';
import type { AgentName } from '../tools/agent-doctor/known-agents.ts';

const execute = promisify(execFile);
const INSTALL_MS = 10 * 60_000;

/** The npm packages, and the presets that run their programs. */
export const realAgents = {
  '@agentclientprotocol/claude-agent-acp': 'claude',
  '@agentclientprotocol/codex-acp': 'codex',
  '@google/gemini-cli': 'gemini',
  '@opencode/cli': 'opencode',
  '@qwen-code/qwen-code': 'qwen',
  'opencode-ai': 'opencode',
} as const satisfies Record<string, AgentName>;
export type RealAgentName = keyof typeof realAgents;

/** The registry does not have the package or the version. */
export class NotInRegistry extends Error {}

export interface RealAgent {
  /** The folder in which it is installed. */
  folder: string;
  argv: [string, ...string[]];
  /** The environment for starting it. */
  env: Record<string, string>;
  remove(): Promise<void>;
}

/** Rejects with npm's error if it cannot be installed, and with `NotInRegistry` if the registry does not have it. */
export async function installAgent(name: RealAgentName, version: string): Promise<RealAgent> {
  const spec = `${name}@${version}`;
  const [program, ...args] = findPreset(realAgents[name])!.program!.argv;
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'svc-real-agent-')));
  const remove = () => rm(folder, { recursive: true, force: true, maxRetries: 5 });
  try {
    const install = ['install', '--prefix', folder, '--no-save', '--no-audit', '--no-fund', spec];
    await execute('npm', install, { cwd: folder, timeout: INSTALL_MS });
    return {
      folder,
      argv: [join(folder, 'node_modules/.bin', program), ...args],
      env: userEnvironment(),
      remove,
    };
  } catch (error) {
    await remove();
    const message = String((error as { stderr?: string }).stderr ?? error);
    const Failure = /\bE404\b|\bETARGET\b/.test(message) ? NotInRegistry : Error;
    throw new Failure(`${spec} cannot be installed: ${message}`);
  }
}

/** A user's environment, without npm's changes: npm puts this project's Node first, which some agents do not support. */
function userEnvironment(): Record<string, string> {
  const { PATH = '', ...rest } = process.env as Record<string, string>;
  const folders = PATH.split(delimiter).filter((folder) => !folder.includes('node_modules'));
  const kept = Object.entries(rest).filter(
    ([name]) => !name.startsWith('npm_') && !name.startsWith('VITEST'),
  );
  return { ...Object.fromEntries(kept), PATH: folders.join(delimiter) };
}
