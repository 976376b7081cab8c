/**
 * Terminal colors on this page. Programs choose them for an unknown background, so each is moved towards black or white
 * until it is legible, in both themes.
 */
import type { CSSProperties } from 'react';
import type { Span } from '../../../transcript/spans.ts';

export interface Theme {
  /** The line background with the lowest contrast. */
  readonly ground: string;
  readonly text: string;
  readonly muted: string;
  readonly named: Readonly<Record<string, string>>;
}

export const themes: { readonly light: Theme; readonly dark: Theme } = {
  light: {
    ground: '#fdeceb',
    text: '#1a1d21',
    muted: '#57606c',
    named: {
      black: '#1a1d21',
      red: '#be211d',
      green: '#0b7239',
      yellow: '#875300',
      blue: '#1d5fd1',
      magenta: '#8a2b91',
      cyan: '#0a6b7c',
      white: '#57606c',
      'bright-black': '#57606c',
      'bright-red': '#c9302b',
      'bright-green': '#107339',
      'bright-yellow': '#916000',
      'bright-blue': '#2a64ca',
      'bright-magenta': '#9a39a1',
      'bright-cyan': '#0c6e7e',
      'bright-white': '#3b424b',
    },
  },
  dark: {
    ground: '#3a2e12',
    text: '#e7e9ec',
    muted: '#9aa3ae',
    named: {
      black: '#979fa8',
      red: '#ff7a70',
      green: '#4cc38a',
      yellow: '#f2b84b',
      blue: '#6ea8ff',
      magenta: '#df8ce8',
      cyan: '#4fc6d8',
      white: '#d4d8dd',
      'bright-black': '#9aa3ae',
      'bright-red': '#ff9a92',
      'bright-green': '#6fd8a4',
      'bright-yellow': '#f7cc78',
      'bright-blue': '#92bfff',
      'bright-magenta': '#ebaaf2',
      'bright-cyan': '#7bd9e7',
      'bright-white': '#ffffff',
    },
  },
};

const ENOUGH = 4.5;
const CACHE_MAX = 1000;
const cache = new Map<string, CSSProperties>();

/** The style of a span; undefined for plain text. Equal styles are the same object. */
export function getStyle(span: Span): CSSProperties | undefined {
  const { fg, bg, bold, dim, italic, underline, strike } = span;
  if (!(fg || bg || bold || dim || italic || underline || strike)) return undefined;
  const key = [fg, bg, bold, dim, italic, underline, strike].join();
  const known = cache.get(key);
  if (known) return known;
  if (cache.size >= CACHE_MAX) cache.clear();
  const [light, dark] = [colors(span, themes.light), colors(span, themes.dark)];
  const lines = [underline && 'underline', strike && 'line-through'].filter(Boolean).join(' ');
  const style: CSSProperties = {
    ...(light.fg !== null && { color: `light-dark(${light.fg}, ${dark.fg})` }),
    ...(light.bg !== null && { backgroundColor: `light-dark(${light.bg}, ${dark.bg})` }),
    ...(bold && { fontWeight: 600 }),
    ...(italic && { fontStyle: 'italic' }),
    ...(lines !== '' && { textDecoration: lines }),
  };
  cache.set(key, style);
  return style;
}

/** Null: the page's own color. */
export function colors(
  { fg, bg, dim }: Pick<Span, 'fg' | 'bg' | 'dim'>,
  theme: Theme,
): { fg: string | null; bg: string | null } {
  const ground = bg === null ? null : (theme.named[bg] ?? toHex(bg));
  const usual = ground === null ? null : theme.text;
  const color = fg === null ? (dim ? theme.muted : usual) : (theme.named[fg] ?? toHex(fg) ?? usual);
  return { fg: color === null ? null : legible(color, ground ?? theme.ground), bg: ground };
}

export function contrast(a: string, b: string): number {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light! + 0.05) / (dark! + 0.05);
}

function legible(color: string, ground: string): string {
  const towards = contrast('#000000', ground) > contrast('#ffffff', ground) ? 0 : 255;
  for (let share = 0; share < 1; share += 0.1) {
    const moved = mixed(color, towards, share);
    if (contrast(moved, ground) >= ENOUGH) return moved;
  }
  return mixed(color, towards, 1);
}

function mixed(color: string, towards: number, share: number): string {
  const levels = parseLevels(color).map((level) => Math.round(level + (towards - level) * share));
  return `#${levels.map((level) => level.toString(16).padStart(2, '0')).join('')}`;
}

/** As WCAG 2.2 defines it. */
function luminance(color: string): number {
  const [r, g, b] = parseLevels(color).map((level) => {
    const s = level / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

function parseLevels(color: string): number[] {
  return [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));
}

function toHex(color: string): string | null {
  return /^#[0-9a-f]{6}$/i.test(color) ? color : null;
}
