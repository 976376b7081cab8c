import { expect, test } from 'vitest';
import { chosenAt, findFileWord, suggestCommands, suggestFiles } from './suggest.ts';

test('suggests commands only while the user types the name of a command', () => {
  const commands = ['plan', 'explain', 'clear'].map((name) => ({ name, description: name }));
  const labels = (text: string) => suggestCommands(text, commands).map(({ label }) => label);
  expect(labels('/')).toEqual(['/plan', '/explain', '/clear']);
  expect(labels('/PLA')).toEqual(['/plan', '/explain']);
  for (const text of ['/plan now', '/nothing', 'plan', 'see /plan']) expect(labels(text)).toEqual([]);
  expect(suggestCommands('/cl', commands)[0]).toMatchObject({ note: 'clear', text: '/clear ', caret: 7 });
});

test('suggests files for a word that starts with @, up to the caret', () => {
  expect(findFileWord('@', 1)).toEqual({ from: 0, word: '' });
  expect(findFileWord('see\n@src/ca', 11)).toEqual({ from: 4, word: 'src/ca' });
  expect(findFileWord('see @cart now', 8)).toEqual({ from: 4, word: 'car' });
  for (const text of ['ana@cart', '@cart ', 'cart']) expect(findFileWord(text, text.length)).toBeNull();
});

test('a chosen file replaces the typed word, and the caret is after it', () => {
  const text = 'see @CAR now';
  const [file, spaced, ...others] = suggestFiles(text, 8, findFileWord(text, 8)!, [
    'src/cart.ts',
    'a la carte.md',
    'other.ts',
  ]);
  expect(file).toEqual({
    key: 'src/cart.ts',
    label: 'cart.ts',
    note: 'src',
    text: 'see @src/cart.ts now',
    caret: 17,
  });
  expect(spaced).toMatchObject({ label: 'a la carte.md', note: '', text: 'see @"a la carte.md" now' });
  expect(others).toEqual([]);
});

test('the selected file stays selected when later results move it', () => {
  const options = (...paths: string[]) => suggestFiles('@', 1, { from: 0, word: '' }, paths);
  expect(chosenAt(options('a', 'b'), null)).toBe(0);
  expect(chosenAt(options('a', 'b'), 'b')).toBe(1);
  expect(chosenAt(options('c', 'a', 'b'), 'b')).toBe(2);
  expect(chosenAt(options('c', 'a'), 'b')).toBe(0);
});
