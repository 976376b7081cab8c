import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type BadgeInput, badgeTexts, idleBadge, step, toView } from './badge.ts';

function after(...inputs: (BadgeInput | BadgeInput['type'])[]) {
  let badge = idleBadge(0);
  for (const input of inputs) {
    badge = step(badge, typeof input === 'string' ? ({ type: input } as BadgeInput) : input, 0);
  }
  return toView(badge, 0).text;
}
const interrupted = { type: 'interrupted', next_attempt_at: 5 } as const;

test('each state has the text that the contract fixes', () => {
  expect(after()).toBe('Online · SSE idle');
  expect(after('selected')).toBe('Online · SSE connecting');
  expect(after('selected', 'connected')).toBe('Online · SSE connected');
  expect(after('selected', 'connected', interrupted)).toBe('Online · SSE reconnecting');
  expect(after('offline')).toBe('Offline · SSE disconnected');
});

test('changes its state as the contract requires', () => {
  expect(after('selected', interrupted)).toBe(badgeTexts.reconnecting);
  expect(after('selected', interrupted, 'connected')).toBe(badgeTexts.connected);
  expect(after('selected', 'connected', 'selected')).toBe(badgeTexts.connecting);
  expect(after('selected', 'connected', 'deselected')).toBe(badgeTexts.idle);
  expect(after('selected', 'connected', 'offline', 'online')).toBe(badgeTexts.reconnecting);
  expect(after('offline', 'selected', 'online')).toBe(badgeTexts.reconnecting);
  expect(after('selected', 'offline', 'deselected', 'online')).toBe(badgeTexts.idle);
  expect(after('offline', 'online')).toBe(badgeTexts.idle);
});

test('offers a refresh after a minute of reconnecting, however many attempts fail', () => {
  let badge = step(step(idleBadge(0), { type: 'selected' }, 0), { type: 'connected' }, 0);
  badge = step(badge, interrupted, 1_000);
  badge = step(badge, { type: 'interrupted', next_attempt_at: 90_000 }, 50_000);
  expect(toView(badge, 60_999)).toMatchObject({ offer_refresh: false, next_attempt_at: 90_000 });
  expect(toView(badge, 61_000)).toMatchObject({ badge: 'reconnecting', offer_refresh: true });
  expect(toView(step(badge, { type: 'connected' }, 62_000), 62_000)).toMatchObject({
    offer_refresh: false,
    next_attempt_at: null,
  });
});

test('after any inputs, offline is disconnected, no selection is idle, and only reconnecting has a next attempt', () => {
  const types = ['selected', 'deselected', 'connected', 'interrupted', 'offline', 'online'] as const;
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...types)), (inputs) => {
      let badge = idleBadge(0);
      let online = true;
      let selected = false;
      for (const [now, type] of inputs.entries()) {
        badge = step(badge, { type, next_attempt_at: now + 1 } as BadgeInput, now);
        if (type === 'offline' || type === 'online') online = type === 'online';
        if (type === 'selected' || type === 'deselected') selected = type === 'selected';
        expect(badge.selected).toBe(selected);
        expect(badge.state === 'disconnected').toBe(!online);
        expect(badge.state === 'idle').toBe(online && !selected);
        if (badge.state !== 'reconnecting') expect(badge.next_attempt_at).toBe(null);
      }
    }),
  );
});
