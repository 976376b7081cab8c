import { expect, test } from 'vitest';
import { isContentBlock, unsupportedBlock } from './content.ts';
import { beginning } from './state.ts';

const text = { type: 'text', text: 'hello' };
const image = { type: 'image', mimeType: 'image/png', data: 'AAAA' };
const link = { type: 'resource_link', name: 'a', uri: 'file:///a' };
const resource = { type: 'resource', resource: { uri: 'file:///a', text: 'a' } };

test("blocks are those of ACP's own schema; unknown fields pass", () => {
  for (const block of [text, image, link, resource, { ...text, more: 1 }, { ...text, _meta: { a: 1 } }]) {
    expect(isContentBlock(block), block.type).toBe(true);
  }
  for (const block of [
    { type: 'text' },
    { type: 'image', data: 7 },
    { type: 'tune' },
    {},
    null,
    'text',
    [text],
  ]) {
    expect(isContentBlock(block), JSON.stringify(block)).toBe(false);
  }
});

test('text and links are taken by every agent, the rest by those that said so', () => {
  const { capabilities } = beginning;
  expect(unsupportedBlock([text, link], capabilities)).toBeNull();
  expect(unsupportedBlock([text, resource, image], capabilities)).toBe('resource');
  expect(unsupportedBlock([text, image], { ...capabilities, image: true })).toBeNull();
});
