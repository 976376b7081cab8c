import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { colors, contrast, getStyle, themes } from './colors.ts';

const named = Object.keys(themes.light.named);
const hex = fc.integer({ min: 0, max: 0xffffff }).map((color) => `#${color.toString(16).padStart(6, '0')}`);
const usual = { bold: false, dim: false, italic: false, underline: false, strike: false, text: 'x' };

describe('colors of output', () => {
  test.each(['light', 'dark'] as const)(
    'are readable in the %s theme, whatever a program chooses',
    (name) => {
      const theme = themes[name];
      const color = fc.option(fc.oneof(fc.constantFrom(...named), hex));
      fc.assert(
        fc.property(color, color, fc.boolean(), (fg, bg, dim) => {
          const shown = colors({ fg, bg, dim }, theme);
          const text = shown.fg ?? theme.text;
          expect(contrast(text, shown.bg ?? theme.ground)).toBeGreaterThanOrEqual(4.5);
        }),
      );
    },
  );

  test('keep the theme’s values if they are named', () => {
    for (const theme of [themes.light, themes.dark]) {
      for (const [name, color] of Object.entries(theme.named)) {
        expect([name, colors({ fg: name, bg: null, dim: false }, theme).fg]).toEqual([name, color]);
      }
    }
  });

  test('are not set for text without colors', () => {
    expect(getStyle({ ...usual, fg: null, bg: null })).toBeUndefined();
    expect(colors({ fg: null, bg: null, dim: false }, themes.light)).toEqual({ fg: null, bg: null });
  });

  test('are ignored if they are invalid', () => {
    expect(colors({ fg: 'url(https://example.com/)', bg: null, dim: false }, themes.dark).fg).toBeNull();
  });

  test('have a contrast of 21 for black and white, and of 1 if they are equal', () => {
    expect(contrast('#000000', '#ffffff')).toBeCloseTo(21);
    expect(contrast('#777777', '#777777')).toBe(1);
  });

  test('use one style for both themes', () => {
    const style = getStyle({ ...usual, fg: 'red', bg: null, bold: true, underline: true });
    expect(style).toEqual({
      color: `light-dark(${themes.light.named.red}, ${themes.dark.named.red})`,
      fontWeight: 600,
      textDecoration: 'underline',
    });
    expect(getStyle({ ...usual, fg: 'red', bg: null, bold: true, underline: true })).toBe(style);
  });
});
