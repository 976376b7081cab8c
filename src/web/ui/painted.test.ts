import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { afterPaint } from './painted.ts';

let frames: (() => void)[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  frames = [];
  vi.stubGlobal('requestAnimationFrame', (frame: () => void) => frames.push(frame));
  vi.stubGlobal('cancelAnimationFrame', (id: number) => {
    frames[id - 1] = () => {};
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('calls the function once, in a task after the frame', () => {
  const fn = vi.fn();
  afterPaint(fn);
  for (const frame of frames) frame();
  expect(fn).not.toHaveBeenCalled();
  vi.runAllTimers();
  expect(fn).toHaveBeenCalledTimes(1);
});

test('calls the function once on a page without frames, even if a frame follows', () => {
  const fn = vi.fn();
  afterPaint(fn);
  vi.runAllTimers();
  for (const frame of frames) frame();
  vi.runAllTimers();
  expect(fn).toHaveBeenCalledTimes(1);
});

test('does not call the function after it was cancelled, before or in the frame', () => {
  const fn = vi.fn();
  afterPaint(fn)();
  for (const frame of frames) frame();
  const cancel = afterPaint(fn);
  frames.at(-1)!();
  cancel();
  vi.runAllTimers();
  expect(fn).not.toHaveBeenCalled();
});
