import { expect, test } from 'vitest';
import { findPreset } from '../domain/presets.ts';
import { agentNames, dressFor, guessAgent } from './known.ts';

test('an agent is known by its program or its package, not by a folder of somebody', () => {
  expect(guessAgent(['qwen', '--acp'])).toBe('qwen');
  expect(guessAgent(['/opt/bin/claude-agent-acp'])).toBe('claude');
  expect(guessAgent(['npx', '-y', '@google/gemini-cli', '--acp'])).toBe('gemini');
  expect(guessAgent(['node', '/x/node_modules/@agentclientprotocol/codex-acp/dist/index.js'])).toBe('codex');
  expect(guessAgent(['/home/claude/mongoose'])).toBe(null);
});

test('every dress sends the agent to the scripted model, and an unknown agent to it by every way', () => {
  const url = 'http://127.0.0.1:4711';
  for (const name of agentNames) expect(JSON.stringify(dressFor(name, url)), name).toContain(url);
  expect(dressFor(null, url)).toMatchObject({
    env: {
      OPENAI_BASE_URL: `${url}/v1`,
      ANTHROPIC_BASE_URL: url,
      GOOGLE_GEMINI_BASE_URL: url,
      OPENAI_API_KEY: 'svc-doctor',
    },
    files: {},
  });
});

test('every agent that is known has a preset, which says whether it asks', () => {
  for (const name of agentNames) expect(findPreset(name)?.permission.guarantee, name).toBe('ask');
});
