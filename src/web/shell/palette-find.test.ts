import { describe, expect, it } from 'vitest';
import { find } from './palette-find.ts';

const things = ['unfix', 'api-fix', 'fix-checkout', 'docs'].map((label, at) => ({
  label,
  also: `agt_${at}`,
}));
const labels = (sought: string, max = 9) => find(things, sought, max).map(({ label }) => label);

describe('finding in the palette', () => {
  it('puts what begins so first, then parts that begin so, then the rest', () => {
    expect(labels('fix')).toEqual(['fix-checkout', 'api-fix', 'unfix']);
  });
  it('needs every word, in any order and case', () => {
    expect(labels('CHECK fix')).toEqual(['fix-checkout']);
    expect(labels('fix nothing')).toEqual([]);
  });
  it('finds by id too', () => {
    expect(labels('agt_3')).toEqual(['docs']);
  });
  it('shows the first ones where nothing is sought, and never more than asked for', () => {
    expect(labels('  ', 2)).toEqual(['unfix', 'api-fix']);
    expect(labels('fix', 1)).toEqual(['fix-checkout']);
  });
});
