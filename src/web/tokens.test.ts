import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { contrast } from './screens/agent/output/colors.ts';

type Channels = [red: number, green: number, blue: number, alpha: number];

const css = readFileSync(new URL('./tokens.css', import.meta.url), 'utf8');

/** The tokens of a theme. The dark theme inherits what it does not set. */
function readTheme(name: 'light' | 'dark'): Record<string, string> {
  const block = (selector: string) => css.split(`${selector} {`)[1]!.split('\n}')[0]!;
  const read = (text: string) =>
    Object.fromEntries(
      [...text.matchAll(/--([\w-]+): ([^;]+);/g)].map(([, token, value]) => [token!, value!]),
    );
  const light = read(block(':root'));
  return name === 'light' ? light : { ...light, ...read(block(':root[data-theme="dark"]')) };
}

function readColor(value: string | undefined): Channels {
  const hex = /^#(\w\w)(\w\w)(\w\w)$/.exec(value ?? '');
  if (hex) return [...hex.slice(1).map((pair) => Number.parseInt(pair, 16)), 1] as Channels;
  const rgb = /^rgb\((\d+) (\d+) (\d+) \/ (\d+)%\)$/.exec(value ?? '');
  if (!rgb) throw new Error(`not a color: ${value}`);
  const [red, green, blue, percent] = rgb.slice(1).map(Number) as Channels;
  return [red, green, blue, percent / 100];
}

/** The color that a person sees: translucent grounds lie on an opaque one. */
function seen(value: string | undefined, under: string): string {
  const [top, below] = [readColor(value), readColor(under)];
  const mixed = [0, 1, 2].map((at) => Math.round(top[at]! * top[3] + below[at]! * (1 - top[3])));
  return `#${mixed.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;
}

const texts = ['text', 'muted', 'accent', 'running', 'needs', 'completed', 'failed', 'warning'];
const grounds = ['ground', 'sidebar', 'surface', 'raised'];
/** Grounds that lie on the ground or on a surface, and the texts on them. */
const tints: Record<string, readonly string[]> = {
  selected: ['text', 'muted', 'running', 'needs', 'completed', 'failed'],
  thumb: ['text', 'muted'],
  button: ['text', 'muted', 'failed'],
  'button-hover': ['text', 'failed'],
  added: ['text', 'completed', 'code-keyword', 'code-string', 'code-value'],
  removed: ['text', 'failed', 'code-keyword', 'code-string', 'code-value'],
  marked: ['text'],
};

for (const name of ['light', 'dark'] as const) {
  const theme = readTheme(name);

  test.each(texts)(`${name}: %s is legible on every ground`, (text) => {
    for (const ground of grounds)
      expect(contrast(theme[text]!, theme[ground]!), ground).toBeGreaterThanOrEqual(4.5);
  });

  test.each(Object.entries(tints))(`${name}: text is legible on %s`, (tint, on_it) => {
    for (const under of ['ground', 'surface']) {
      const ground = seen(theme[tint], theme[under]!);
      for (const text of on_it)
        expect(contrast(theme[text]!, ground), `${text} on ${under}`).toBeGreaterThanOrEqual(4.5);
    }
  });

  test(`${name}: text on the accent and on a count is legible`, () => {
    expect(contrast(theme['on-accent']!, theme.accent!)).toBeGreaterThanOrEqual(4.5);
    expect(contrast(theme.ground!, theme.needs!)).toBeGreaterThanOrEqual(4.5);
  });

  test(`${name}: each text color differs from the accent`, () => {
    for (const text of texts.filter((one) => one !== 'accent')) expect(theme[text]).not.toBe(theme.accent);
  });
}
