/** An agent prints its secret with escape sequences between the letters, so that it is not recognized. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TestPlane } from '../../src/testing/plane.ts';

const SECRET = 'sk-interrupted-0001';

let plane: TestPlane;
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(() => plane.close());

/** The text as a terminal, or a page that drops the sequences, shows it. */
const shown = (output: Buffer) => output.toString().replace(/\x1b(?:\[[0-9;]*[A-Za-z]|\(B)/g, '');

test.each([
  ['between two letters', `printf 's\\033[0m%s\\n' "\${API_KEY#s}"`],
  ['between all letters', String.raw`printf %s "$API_KEY" | sed 's/./&\x1b[1;31m/g'; echo`],
  [
    'in pieces',
    String.raw`printf 's\033[3'; sleep 1.2; printf '1m'; sleep 1.2; printf '\033(B%s\n' "${'$'}{API_KEY#s}"`,
  ],
  ['as the end of a sequence', String.raw`printf '\033[%s\n' "$API_KEY"`],
])('redacts a secret with escape sequences %s', async (_, command) => {
  const agent = await plane.agent(`${command}; echo done`, { env: { API_KEY: SECRET } });
  await plane.finished(agent.id);
  const output = await plane.output(agent.id);
  expect(shown(output)).toContain('done');
  expect(output.toString()).toContain('[redacted:API_KEY]');
  expect(output.toString()).not.toContain(SECRET);
  expect(shown(output)).not.toContain(SECRET);
});
