/** Long texts from agents and users that try to keep the service or the command line busy. */
import { expect, test } from 'vitest';
import { readMessage } from '../../src/acp/message.ts';
import { TerminalFilter, printable as visibleInTerminal } from '../../src/cli/terminal.ts';
import { Redactor } from '../../src/core/redaction.ts';
import { escapeHidden } from '../../src/core/visible.ts';
import { firstOf } from '../../src/testing/long.ts';
import { AROUND, applyToLongTexts } from '../../src/testing/long-input.ts';
import { Script } from '../../src/tools/agent-doctor/model/script.ts';
import { pieces } from '../../src/tools/agent-doctor/model/shape.ts';

const redactor = Redactor.of([
  { name: 'KEY', value: 'k3y-of-mine' },
  { name: 'ZEROS', value: '0'.repeat(64) },
])!;

const saying = (text: string) => ({
  ...{ model: 'm', tools: [], answer_schema: null, stream: false },
  turns: [{ role: 'user' as const, text }],
});

test.each<[string, (text: string) => unknown]>([
  ['names of hidden characters', escapeHidden],
  ['a field in a terminal', visibleInTerminal],
  ['output in a terminal', (text) => new TerminalFilter({ colors: true }).write(text)],
  ['redaction of text', (text) => redactor.text(text)],
  ['redaction of JSON', (text) => redactor.json(JSON.stringify({ text }))],
  ['redaction of a stream', (text) => redactor.take(Buffer.from(text), { last: false }).held],
  ['pieces of a model answer', pieces],
  ['a prompt to the model of the agent doctor', (text) => new Script('/').answer(saying(text)).text],
])('%s: takes linear time whatever is repeated', (_, apply) => {
  applyToLongTexts(apply, firstOf(4, AROUND));
  expect(apply('end')).not.toBeUndefined();
});

test.each(firstOf(1, ['{}', '[]', '0']))(
  'a message of an agent with millions of values (%s) is not parsed',
  (value) => {
    const values = `${value},`.repeat(8_000_000);
    const line = `{"jsonrpc":"2.0","method":"session/update","params":{"x":[${values}0]}}\n`;
    expect(readMessage(line)).toBeNull();
    const text = `{"jsonrpc":"2.0","method":"session/update","params":{"x":${JSON.stringify(values)}}}\n`;
    expect(readMessage(text)).toMatchObject({ kind: 'notification' });
  },
);
