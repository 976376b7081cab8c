/**
 * Real coding agents for the tests that are run on demand (`npm run test:agents`): each is installed by npm into a folder
 * of its own, from whatever registry the environment has, and speaks to the scripted model.
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

/** The packages, and the presets that run what they install. */
export const realAgents = {
  '@agentclientprotocol/claude-agent-acp': 'claude',
  '@agentclientprotocol/codex-acp': 'codex',
  '@google/gemini-cli': 'gemini',
  '@opencode/cli': 'opencode',
  '@qwen-code/qwen-code': 'qwen',
  'opencode-ai': 'opencode',
} as const satisfies Record<string, AgentName>;
export type RealAgentName = keyof typeof realAgents;

/** The registry that npm uses does not have it. */
export class NotInRegistry extends Error {}

export interface RealAgent {
  /** Where it is installed. */
  folder: string;
  argv: [string, ...string[]];
  /** The environment to start it in. */
  env: Record<string, string>;
  remove(): Promise<void>;
}

/** Rejects with npm's words when it cannot be installed, as `NotInRegistry` when it is not there. */
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
      env: strangersEnvironment(),
      remove,
    };
  } catch (error) {
    await remove();
    const words = String((error as { stderr?: string }).stderr ?? error);
    const Failure = /\bE404\b|\bETARGET\b/.test(words) ? NotInRegistry : Error;
    throw new Failure(`${spec} cannot be installed: ${words}`);
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
