import { expect, test } from 'vitest';
import { searchableTexts } from './search-text.ts';

const update = (fields: object) => ({ method: 'session/update', params: { update: fields } });
const text = (content: string) => ({ type: 'text', text: content });

test('extracts the searchable text of messages and tool calls', () => {
  const found: [unknown, string[]][] = [
    [update({ sessionUpdate: 'agent_message_chunk', content: text('hello') }), ['hello']],
    [update({ sessionUpdate: 'agent_thought_chunk', content: text('hm') }), ['hm']],
    [
      { method: 'session/prompt', params: { prompt: [text('do'), { type: 'image' }, text('it')] } },
      ['do', 'it'],
    ],
    [
      update({
        sessionUpdate: 'tool_call',
        title: 'Run',
        rawInput: { command: ['rm', '-r'], deep: { at: '/w' } },
      }),
      ['Run', 'rm', '-r', '/w'],
    ],
    [update({ sessionUpdate: 'tool_call_update', status: 'completed' }), ['']],
    [
      { method: 'session/request_permission', params: { toolCall: { title: 'Ask', rawInput: 'x' } } },
      ['Ask', 'x'],
    ],
    [update({ sessionUpdate: 'usage_update', used: 1 }), []],
    [{ id: 1, result: { stopReason: 'end_turn' } }, []],
    [null, []],
    [{ method: 'session/prompt', params: 7 }, []],
  ];
  for (const [payload, content] of found) expect(searchableTexts(payload)).toEqual(content);
});

test('reads deeply nested and very large input', () => {
  const depth = 100_000;
  const deep = JSON.parse(`${'['.repeat(depth)}"end"${']'.repeat(depth)}`);
  const wide = Array.from({ length: 300_000 }, () => 'x');
  const call = (rawInput: unknown) => searchableTexts(update({ sessionUpdate: 'tool_call', rawInput }));
  expect(call(deep)).toEqual(['', 'end']);
  expect(call(wide)).toHaveLength(wide.length + 1);
});
