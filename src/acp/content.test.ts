import { expect, test } from 'vitest';
import { isContentBlock, unsupportedBlock } from './content.ts';
import { initialState } from './state.ts';

const text = { type: 'text', text: 'hello' };
const image = { type: 'image', mimeType: 'image/png', data: 'AAAA' };
const link = { type: 'resource_link', name: 'a', uri: 'file:///a' };
const resource = { type: 'resource', resource: { uri: 'file:///a', text: 'a' } };

test("accepts blocks that match ACP's schema, with unknown fields", () => {
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

test('every agent supports text and links; other blocks need a capability', () => {
  const { capabilities } = initialState;
  expect(unsupportedBlock([text, link], capabilities)).toBeNull();
  expect(unsupportedBlock([text, resource, image], capabilities)).toBe('resource');
  expect(unsupportedBlock([text, image], { ...capabilities, image: true })).toBeNull();
});
