import { expect, test } from 'vitest';
import { promptText, withText } from './prompt-content.ts';

const text = (text: string) => ({ type: 'text', text });
const image = { type: 'image', mimeType: 'image/png', data: 'AA==' };
const link = { type: 'resource_link', uri: 'file:///a', name: 'a' };

test('a new text keeps images, links and files of a prompt in place', () => {
  const content = [image, text('one '), link, text('two')];
  expect(promptText(content)).toBe('one two');
  expect(withText(content, 'three')).toEqual([image, text('three'), link]);
  expect(withText([image], 'new')).toEqual([text('new'), image]);
  expect(withText([], 'new')).toEqual([text('new')]);
});

test('the text of a long prompt is not cut', () => {
  const long = 'x'.repeat(500_000);
  expect(promptText([image, text(long), text('y')])).toBe(`${long}y`);
});
