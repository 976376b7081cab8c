import type { AnyMessage } from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { MIB } from '../../base/limits.ts';
import { emptyStdoutFacts, FrameReader } from './frames.ts';

function open() {
  const facts = emptyStdoutFacts();
  const taken: AnyMessage[] = [];
  const reader = new FrameReader(facts, (message) => taken.push(message));
  return { facts, taken, reader, push: (text: string) => reader.push(Buffer.from(text)) };
}

const notice = { jsonrpc: '2.0', method: 'note', params: { text: 'grüße' } };

test('reads messages in any chunks, and the last one without its newline', () => {
  const { facts, taken, reader } = open();
  const bytes = Buffer.from(`${JSON.stringify(notice)}\r\n\n${JSON.stringify(notice)}`);
  for (const byte of bytes) reader.push(Buffer.of(byte));
  reader.end();
  expect(taken).toEqual([notice, notice]);
  expect(facts).toMatchObject({ frames: 2, noise_lines: 0 });
});

test('counts lines that are not messages, and responses to unknown requests', () => {
  const { facts, taken, reader, push } = open();
  reader.sent({ jsonrpc: '2.0', id: 1, method: 'initialize' });
  push('Welcome!\n{"half":\n[]\nnull\n{"jsonrpc":"2.0"}\n{"jsonrpc":"2.0","id":2}\n');
  push('{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","id":1,"result":{}}\n');
  expect(taken).toHaveLength(1);
  expect(facts).toMatchObject({ frames: 1, noise_lines: 6, noise_sample: 'Welcome!', stray_responses: 1 });
});

test('accepts and records a long line, drops an endless one, and reads what follows', () => {
  const { facts, taken, reader, push } = open();
  push(`${JSON.stringify({ ...notice, params: 'x'.repeat(2 * MIB) })}\n`);
  const piece = Buffer.alloc(11 * MIB, 'x');
  for (let count = 0; count < 3; count++) reader.push(piece);
  push(`\n${JSON.stringify(notice)}\n`);
  expect(taken).toHaveLength(2);
  expect(facts).toMatchObject({ frames: 2, long_lines: 2, lost_lines: 1, longest_line_bytes: 33 * MIB });
});
