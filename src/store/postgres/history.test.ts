import { expect, test } from 'vitest';
import { hasOnlyFailedOver } from './history.ts';

test('a failover changes nothing but the timeline', () => {
  const place = '7398/00000001/16384/16500';
  expect(hasOnlyFailedOver(place, '7398/00000002/16384/16500')).toBe(true);
  expect(hasOnlyFailedOver(place, place)).toBe(false);
  expect(hasOnlyFailedOver(place, '7399/00000002/16384/16500')).toBe(false);
  expect(hasOnlyFailedOver(place, '7398/00000002/16385/16500')).toBe(false);
  expect(hasOnlyFailedOver(place, '7398/00000002/16384/16501')).toBe(false);
});
