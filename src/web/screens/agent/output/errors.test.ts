import { expect, test } from 'vitest';
import { isErrorLine } from './errors.ts';

test.each([
  ['error: cannot find module', true],
  ["TypeError: Cannot read properties of undefined (reading 'id')", true],
  ['java.lang.NullPointerException', true],
  ['Traceback (most recent call last):', true],
  ['npm ERR! code ELIFECYCLE', true],
  ['/bin/sh: 1: gemini: not found', true],
  ['0 errors, 2 warnings', false],
  ['checked the error-handling page: not found in the index', false],
  ['Terrorless parade', false],
  ['svc demo agent 0.1.0 is ready', false],
])('%s', (line, expected) => {
  expect(isErrorLine(line)).toBe(expected);
});
