import { describe, expect, it } from 'vitest';
import { find } from './palette-find.ts';

const items = ['unfix', 'api-fix', 'fix-checkout', 'docs'].map((label, at) => ({
  label,
  also: `agt_${at}`,
}));
const labels = (sought: string, max = 9) => find(items, sought, max).map(({ label }) => label);

describe('the search of the palette', () => {
  it('ranks labels that start with the text first, then those with a word that does, then the rest', () => {
    expect(labels('fix')).toEqual(['fix-checkout', 'api-fix', 'unfix']);
  });
  it('requires every word, in any order and case', () => {
    expect(labels('CHECK fix')).toEqual(['fix-checkout']);
    expect(labels('fix nothing')).toEqual([]);
  });
  it('also finds ids', () => {
    expect(labels('agt_3')).toEqual(['docs']);
  });
  it('lists entries that are only for searches when their text matches', () => {
    const all = items.map((item) => ({ ...item, only_searched: item.label === 'docs' }));
    expect(find(all, '', 9).map(({ label }) => label)).toEqual(['unfix', 'api-fix', 'fix-checkout']);
    expect(find(all, 'doc', 9).map(({ label }) => label)).toEqual(['docs']);
  });
  it('shows the first entries for an empty text, and never more than the maximum', () => {
    expect(labels('  ', 2)).toEqual(['unfix', 'api-fix']);
    expect(labels('fix', 1)).toEqual(['fix-checkout']);
  });
});
