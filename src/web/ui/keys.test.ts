import { afterEach, expect, test, vi } from 'vitest';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.resetModules();
});

async function keysOn(platform: string) {
  vi.stubGlobal('navigator', { platform });
  vi.resetModules();
  return import('./keys.ts');
}

const press = (key: string, held: Partial<KeyboardEvent> = {}, with_alt_graph = false) =>
  ({
    ...{ key, keyCode: 0, isComposing: false, ctrlKey: false, metaKey: false, altKey: false, ...held },
    getModifierState: (name: string) => with_alt_graph && name === 'AltGraph',
  }) as KeyboardEvent;

test('a punctuation character that is typed with AltGr has no modifier', async () => {
  const { hasModifier } = await keysOn('Win32');
  expect(hasModifier(press('['))).toBe(false);
  expect(hasModifier(press('[', { ctrlKey: true, altKey: true }, true))).toBe(false);
  expect(hasModifier(press(']', {}, true))).toBe(false);
  expect(hasModifier(press('[', { ctrlKey: true, altKey: true }))).toBe(true);
  expect(hasModifier(press('[', { altKey: true }))).toBe(true);
  expect(hasModifier(press('c', { ctrlKey: true, altKey: true }, true))).toBe(true);
  expect(hasModifier(press('Enter', { ctrlKey: true }))).toBe(true);
});

test('a punctuation character that is typed with Option on a Mac has no modifier', async () => {
  const { hasModifier } = await keysOn('MacIntel');
  expect(hasModifier(press('[', { altKey: true }))).toBe(false);
  expect(hasModifier(press('[', { altKey: true, metaKey: true }))).toBe(true);
  expect(hasModifier(press('[', { altKey: true, ctrlKey: true }))).toBe(true);
  expect(hasModifier(press('[', { metaKey: true }))).toBe(true);
  expect(hasModifier(press('ç', { altKey: true }))).toBe(true);
  expect(hasModifier(press('1', { altKey: true }))).toBe(true);
});

test('keys of an input method are not those of a form, also when only their code says so', async () => {
  const { isComposing, isModEnter } = await keysOn('MacIntel');
  const enter = { metaKey: true };
  const presses = [enter, { ...enter, isComposing: true }, { ...enter, keyCode: 229 }].map((held) =>
    press('Enter', held),
  );
  expect(presses.map(isComposing)).toEqual([false, true, true]);
  expect(presses.map(isModEnter)).toEqual([true, false, false]);
});
