import { expect, test } from 'vitest';
import { fetchPrompt, newWord, recallPrompt, rememberPrompt, runPrompt } from '../prompts.ts';
import type { Conversation, Tool, Turn } from './conversation.ts';
import { Script, toolFor } from './script.ts';

const parameters = {
  type: 'object',
  properties: { path: { type: 'string' }, content: { type: 'string' } },
  required: ['path', 'content'],
};
const write: Tool = { name: 'write_file', description: '', parameters };

function conversationOf(turns: Turn[], more: Partial<Conversation> = {}): Conversation {
  return { model: 'm', turns, tools: [write], answer_schema: null, stream: false, ...more };
}
const user = (text: string): Turn => ({ role: 'user', text });
const named = (names: string[]): Tool[] => names.map((name) => ({ name, description: '', parameters: {} }));
const result = (text: string): Turn => ({ role: 'tool', text });
const model: Turn = { role: 'assistant', text: 'I use the tool.' };

test('answers a prompt with a call, and its result with a text that quotes it', () => {
  const script = new Script('/place');
  const first = script.answer(conversationOf([user('do it')]));
  expect(first.call).toMatchObject({
    name: 'write_file',
    arguments: { path: '/place/svc-doctor-1.txt', content: 'hello' },
  });
  const second = script.answer(conversationOf([user('do it'), model, result('written')]));
  expect(second).toMatchObject({ text: 'The tool answered: written', call: null });
  expect(first.usage.input_tokens).toBeGreaterThan(0);
  expect(first.usage.output_tokens).toBeGreaterThan(0);
});

test('answers each prompt of a conversation with a new call, also after a cancelled one', () => {
  const script = new Script('/place');
  const before = [user('do it'), model, result('written'), { ...model, text: 'Done.' }];
  expect(script.answer(conversationOf(before.slice(0, 1))).call).not.toBe(null);
  const next = script.answer(conversationOf([...before, user('again')]));
  expect(next.call?.arguments.path).toBe('/place/svc-doctor-2.txt');
  const cancelled = [user('do it'), model, result('cancelled'), user('again')];
  expect(script.answer(conversationOf(cancelled)).call).not.toBe(null);
});

test('does not treat tagged text from agents as a prompt', () => {
  const script = new Script('/place');
  const reminder = user('<system-reminder>\nThe list is <b>empty</b>.\n</system-reminder>');
  const turns = [user('do it'), model, result('written'), reminder];
  expect(script.answer(conversationOf(turns)).text).toBe('The tool answered: written');
});

test('answers small side requests with a short text, or JSON in the requested format', () => {
  const script = new Script('/place');
  expect(script.answer(conversationOf([user('a title for this')], { tools: [] }))).toMatchObject({
    text: 'A check of the agent doctor',
    call: null,
  });
  const answer_schema = { type: 'object', properties: { score: { type: 'integer' } }, required: ['score'] };
  expect(
    JSON.parse(script.answer(conversationOf([user('how hard is it?')], { answer_schema })).text),
  ).toEqual({
    score: 10,
  });
});

test.each([newWord(), 'doctor-AAAAAAAAAAA-'])(
  'knows word %# as long as the conversation contains it',
  (word) => {
    const script = new Script('/place');
    expect(script.answer(conversationOf([user(rememberPrompt(word))]))).toMatchObject({
      text: 'OK',
      call: null,
    });
    const conversation = [user(rememberPrompt(word)), { ...model, text: 'OK' }, user(recallPrompt)];
    expect(script.answer(conversationOf(conversation)).text).toBe(word);
    expect(script.answer(conversationOf([user(recallPrompt)])).text).toBe('I do not know of any word.');
  },
);

test('picks a tool that writes files before one that runs commands', () => {
  const chosen = (...names: string[]) => toolFor('write', named(names))?.name ?? null;
  expect(chosen('read_file', 'run_shell_command', 'write_file')).toBe('write_file');
  expect(chosen('Read', 'Bash', 'BashOutput', 'KillShell', 'TodoWrite', 'Write')).toBe('Write');
  expect(chosen('todowrite', 'write', 'edit')).toBe('write');
  expect(chosen('write_stdin', 'exec_command', 'update_plan')).toBe('exec_command');
  expect(chosen('shell')).toBe('shell');
  expect(chosen('developer__shell', 'developer__text_editor')).toBe('developer__text_editor');
  expect(chosen('read_file', 'todo_write', 'save_memory', 'web_search')).toBe(null);
});

test('answers a prompt to run or fetch with a call of a suitable tool, or none', () => {
  const tools = named(['write_file', 'run_shell_command', 'web_fetch']);
  const call = (prompt: string, offered = tools) =>
    new Script('/place').answer(conversationOf([user(prompt)], { tools: offered })).call?.name ?? null;
  expect([call('do it'), call(runPrompt), call(fetchPrompt)]).toEqual(tools.map(({ name }) => name));
  expect([call(runPrompt, [write]), call(fetchPrompt, [write])]).toEqual([null, null]);
});
