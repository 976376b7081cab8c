import { expect, test } from 'vitest';
import { Wake } from './async.ts';

test('a wait whose time is over ends at once, without a warning', async () => {
  const warnings: Error[] = [];
  const listen = (warning: Error) => warnings.push(warning);
  process.on('warning', listen);
  await new Wake().wait(-5);
  // Warnings are reported in a later turn.
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', listen);
  expect(warnings).toEqual([]);
});
