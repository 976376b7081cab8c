/** The agents that the doctor knows, by their preset's id, and how it recognizes them by their commands. */
import { basename } from 'node:path';

export const agentNames = ['claude', 'codex', 'gemini', 'goose', 'opencode', 'qwen'] as const;
export type AgentName = (typeof agentNames)[number];

/** Matched against a word of the command: the name of a program, or of its package. */
export function guessAgent(argv: readonly string[]): AgentName | null {
  const names = argv.flatMap((word) => [basename(word), word.split('node_modules/').slice(1).join()]);
  return agentNames.find((agent) => names.some((name) => new RegExp(`\\b${agent}`).test(name))) ?? null;
}
