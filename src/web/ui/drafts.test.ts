import { afterEach, beforeEach, expect, test, vi } from 'vitest';
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
