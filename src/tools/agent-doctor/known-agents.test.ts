import { expect, test } from 'vitest';
import { findPreset } from '../../features/presets/rules/catalog.ts';
import { agentNames, guessAgent } from './known-agents.ts';
import { modelSettingsFor } from './model/agent-settings.ts';

test('recognizes an agent by its program or package, not by a folder', () => {
  expect(guessAgent(['qwen', '--acp'])).toBe('qwen');
  expect(guessAgent(['/opt/bin/claude-agent-acp'])).toBe('claude');
  expect(guessAgent(['npx', '-y', '@google/gemini-cli', '--acp'])).toBe('gemini');
  expect(guessAgent(['node', '/x/node_modules/@agentclientprotocol/codex-acp/dist/index.js'])).toBe('codex');
  expect(guessAgent(['/home/claude/mongoose'])).toBe(null);
});

test('redirects each known agent to the scripted model, and an unknown one in every way', () => {
  const url = 'http://127.0.0.1:4711';
  for (const name of agentNames) expect(JSON.stringify(modelSettingsFor(name, url)), name).toContain(url);
  expect(modelSettingsFor(null, url)).toMatchObject({
    env: {
      OPENAI_BASE_URL: `${url}/v1`,
      ANTHROPIC_BASE_URL: url,
      GOOGLE_GEMINI_BASE_URL: url,
      OPENAI_API_KEY: 'svc-doctor',
    },
    files: {},
  });
});

test('every known agent has a preset, which says whether it asks', () => {
  for (const name of agentNames) expect(findPreset(name)?.permission.guarantee, name).toBe('ask');
});
