/** Long texts of agents and users, made to keep the service or the command line busy. */
import { expect, test } from 'vitest';
import { pieces } from '../../src/agent-doctor/model/shape.ts';
import { TerminalFilter, visible as visibleInTerminal } from '../../src/cli/terminal.ts';
import { Redactor } from '../../src/domain/redaction.ts';
import { visible } from '../../src/domain/visible.ts';
import { applyToLongTexts } from '../../src/testing/long-input.ts';

const redactor = Redactor.of([
  { name: 'KEY', value: 'k3y-of-mine' },
  { name: 'ZEROS', value: '0'.repeat(64) },
])!;

test.each<[string, (text: string) => unknown]>([
  ['names of hidden characters', visible],
  ['a field in a terminal', visibleInTerminal],
  ['output in a terminal', (text) => new TerminalFilter({ colours: true }).write(text)],
  ['redaction of text', (text) => redactor.text(text)],
  ['redaction of JSON', (text) => redactor.json(JSON.stringify({ text }))],
  ['redaction of a stream', (text) => redactor.take(Buffer.from(text), { last: false }).held],
  ['pieces of a model answer', pieces],
])('%s: takes linear time whatever is repeated', (_, apply) => {
  applyToLongTexts(apply);
  expect(apply('end')).not.toBeUndefined();
});
