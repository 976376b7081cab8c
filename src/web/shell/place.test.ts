import { expect, test } from 'vitest';
import { isInPlace } from './place.ts';

const places = ['/approvals', '/agents', '/teams', '/runs'];
const placesOf = (pathname: string) => places.filter((to) => isInPlace(pathname, to));

test('a page belongs to one entry of the navigation, and a run to Runs', () => {
  expect(placesOf('/agents')).toEqual(['/agents']);
  expect(placesOf('/agents/agt_1/output')).toEqual(['/agents']);
  expect(placesOf('/teams/tea_1/edit')).toEqual(['/teams']);
  expect(placesOf('/teams/tea_1/runs/run_1')).toEqual(['/runs']);
  expect(placesOf('/runs')).toEqual(['/runs']);
  expect(placesOf('/agentsx')).toEqual([]);
});
