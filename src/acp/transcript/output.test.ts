import { expect, test } from 'vitest';
import { outputText } from './output.ts';

test('decodes bytes as UTF-8, and leaves data that is not base64 unchanged', () => {
  const utf8 = btoa(String.fromCharCode(0xc3, 0xa9, 0xff));
  expect(outputText({ data: utf8, encoding: 'base64' })).toEqual({ text: 'é\ufffd', binary: true });
  expect(outputText({ data: '%%%', encoding: 'base64' })).toEqual({ text: '%%%', binary: true });
  expect(outputText({ data: 'é' })).toEqual({ text: 'é', binary: false });
  expect(outputText({ data: 7 })).toEqual({ text: '', binary: false });
});
