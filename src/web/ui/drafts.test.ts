import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { BrowserStorage } from '../../testing/browser-storage.ts';

const PLACE = 'svc.draft.usr_1.prompt.agt_1';

let storage: BrowserStorage;
let drafts: typeof import('./drafts.ts');
beforeEach(async () => {
  storage = BrowserStorage.open();
  drafts = await import('./drafts.ts');
});
afterEach(() => vi.unstubAllGlobals());

const shown = () => drafts.getDraft(PLACE);
const stored = () => storage.items.get(PLACE) ?? null;

test('a draft follows what another tab types and sends', () => {
  const listener = vi.fn();
  drafts.subscribeDrafts(listener);
  expect(shown()).toBe('');
  storage.change(PLACE, 'hello')();
  expect(shown()).toBe('hello');
  storage.change(PLACE, null)();
  expect([shown(), listener.mock.calls.length]).toEqual(['', 2]);
});

test('text that was typed while another tab sent an older one stays, and is stored', () => {
  drafts.setDraft(PLACE, 'hello');
  // The other tab knows nothing of the text that follows.
  const notify = storage.change(PLACE, null);
  drafts.setDraft(PLACE, 'hello, and one more thing');
  notify();
  expect([shown(), stored()]).toEqual(['hello, and one more thing', 'hello, and one more thing']);

  drafts.setDraft(PLACE, 'newer');
  storage.items.set(PLACE, 'older');
  storage.change(PLACE, null)();
  expect([shown(), stored()]).toEqual(['newer', 'newer']);
});

test('a tab that has sent a text keeps what another tab has typed since', () => {
  drafts.setDraft(PLACE, 'hello');
  storage.change(PLACE, 'hello again');
  drafts.setDraft(PLACE, drafts.unlessSent('hello'));
  expect([shown(), stored()]).toEqual(['hello again', 'hello again']);
  drafts.setDraft(PLACE, drafts.unlessSent('hello again'));
  expect([shown(), stored()]).toEqual(['', null]);
});

test('a late notice of another tab does not bring back an older text', () => {
  const first = storage.change(PLACE, 'h');
  storage.change(PLACE, 'he');
  expect(shown()).toBe('he');
  first();
  expect(shown()).toBe('he');
});

test('text that does not fit into the storage stays until another tab changes the draft', () => {
  drafts.setDraft(PLACE, 'hello');
  storage.is_full = true;
  drafts.setDraft(PLACE, 'hello, and much more');
  expect([shown(), stored()]).toEqual(['hello, and much more', 'hello']);
  storage.is_full = false;
  storage.change(PLACE, null)();
  expect([shown(), stored()]).toEqual(['hello, and much more', 'hello, and much more']);
  storage.change(PLACE, 'of the other tab')();
  expect(shown()).toBe('of the other tab');
});

describe('the last attempt to send a draft', () => {
  let made = 0;
  /** The key of an attempt; `page`: on which the form is. */
  const keyOf = (request: unknown, page = first) =>
    drafts.attemptOf(PLACE, page).of(request, () => `key ${++made}`);
  const first: { current: string | null } = { current: null };
  beforeEach(() => {
    first.current = null;
    drafts.setDraft(PLACE, 'continue');
  });

  test('a retry has the same key, also after a reload and in other tabs', async () => {
    const key = keyOf({ text: 'continue' });
    expect(keyOf({ text: 'continue' })).toBe(key);
    expect(keyOf({ text: 'continue' }, { current: null })).toBe(key);
    drafts.setDraft(PLACE, 'continue');
    expect(keyOf({ text: 'continue' })).toBe(key);
    // Fields that are not part of the draft.
    expect(keyOf({ text: 'continue', to: 'leader' })).not.toBe(key);
  });

  test('the same text has another key after success', () => {
    const key = keyOf('continue');
    drafts.attemptOf(PLACE, first).forget('continue');
    expect(keyOf('continue')).not.toBe(key);
  });

  test.each(['', 'continue, please'])('the same text has another key after the draft was “%s”', (between) => {
    const key = keyOf('continue');
    drafts.setDraft(PLACE, between);
    drafts.setDraft(PLACE, 'continue');
    expect(keyOf('continue')).not.toBe(key);
  });

  test('the success of an earlier attempt does not end a later one', () => {
    keyOf('continue');
    drafts.setDraft(PLACE, 'and so on');
    const key = keyOf('and so on');
    drafts.attemptOf(PLACE, first).forget('continue');
    expect(keyOf('and so on')).toBe(key);
  });

  test('without a draft, the key is not stored', () => {
    drafts.setDraft(PLACE, '');
    const key = keyOf({});
    expect(keyOf({})).toBe(key);
    expect([...storage.items]).toEqual([]);
    expect(keyOf({}, { current: null })).not.toBe(key);
    // What was entered while it was being sent.
    drafts.setDraft(PLACE, 'continue');
    drafts.attemptOf(PLACE, first).forget({});
    drafts.setDraft(PLACE, '');
    expect(keyOf({})).not.toBe(key);
  });
});
