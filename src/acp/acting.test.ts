import { describe, expect, it, test } from 'vitest';
import { type Acting, asksOf, isHarmless, nothingObserved, seeCall, seeRequest } from './acting.ts';
import { limits } from './limits.ts';

const seen = (acting: Acting, ...updates: Record<string, unknown>[]) => updates.reduce(seeCall, acting);
const ran = { toolCallId: 'c1', status: 'completed' };

describe('an agent', () => {
  it.each(['edit', 'delete', 'move', 'execute', 'fetch'])(
    'acts without asking if a %s call completes without a permission request',
    (kind) => {
      const acting = seen(nothingObserved, { ...ran, kind, title: 'Do it', status: 'pending' }, ran);
      expect(acting).toMatchObject({ unasked: 'Do it', calls: [] });
      expect(asksOf(acting)).toBe('acts');
    },
  );

  it.each(['read', 'search', 'think', 'switch_mode', 'other', undefined])(
    'reveals nothing by a %s call',
    (kind) => {
      expect(asksOf(seen(nothingObserved, { ...ran, kind, status: 'pending' }, ran))).toBe('unknown');
    },
  );

  it('asks if the request comes before or after its call is reported', () => {
    const call = { toolCallId: 'c1', kind: 'edit', title: 'Write' };
    const before = seeRequest(nothingObserved, call);
    const later = seeRequest(seen(nothingObserved, { ...call, status: 'in_progress' }), call);
    for (const acting of [before, later]) expect(asksOf(seeCall(acting, ran))).toBe('asks');
  });

  it('acts without asking if one of its calls had no request', () => {
    const asked = seen(seeRequest(nothingObserved, { toolCallId: 'c1', kind: 'edit' }), ran);
    const acting = seen(asked, { ...ran, toolCallId: 'c2', kind: 'execute', rawInput: { command: 'make' } });
    expect(asksOf(acting)).toBe('acts');
    expect(asksOf(seeRequest(acting, { toolCallId: 'c3' }))).toBe('acts');
  });

  it('reveals nothing by a call that failed, or that was always allowed before', () => {
    expect(asksOf(seen(nothingObserved, { ...ran, kind: 'edit', status: 'failed' }))).toBe('unknown');
    const allowed = { ...nothingObserved, requested: true, allowed_always: true };
    expect(asksOf(seen(allowed, { ...ran, kind: 'edit' }))).toBe('asks');
  });

  it('may run read-only commands without a request', () => {
    const call = { toolCallId: 'c1', kind: 'execute', status: 'pending', rawInput: {} };
    const reads = seen(nothingObserved, call, { ...call, rawInput: { command: 'git status' } }, ran);
    expect(asksOf(reads)).toBe('unknown');
    expect(asksOf(seen(nothingObserved, call, { ...call, rawInput: { command: 'git push' } }, ran))).toBe(
      'acts',
    );
  });

  it('keeps a bounded number of calls, and none without an id', () => {
    let acting = nothingObserved;
    for (let n = 0; n <= limits.acting_calls_max; n++) {
      acting = seeCall(acting, { toolCallId: `c${n}`, kind: 'edit', title: 'x'.repeat(10_000) });
    }
    expect(acting.calls).toHaveLength(limits.acting_calls_max);
    expect(acting.calls[0]).toMatchObject({ id: 'c1', title: 'x'.repeat(limits.acting_title_chars_max) });
    expect(seeCall(acting, { kind: 'edit', status: 'completed' })).toBe(acting);
    expect(seeRequest(nothingObserved, undefined)).toEqual({ ...nothingObserved, requested: true });
  });
});

test.each([
  'ls -la',
  'cat a.txt | head -5',
  'cd src && git log --oneline',
  'grep -r x . 2>/dev/null; wc -l a',
  '/bin/bash -lc "git diff HEAD"',
  "bash -c 'pwd'",
  'svc actor inbox --limit 5',
  `svc actor send --to leader --payload '{"text": "a; b > c, it'\\''s $(d)"}'`,
])('%s is harmless', (command) => {
  expect(isHarmless(command)).toBe(true);
});

test.each([
  '',
  'rm -rf x',
  'echo hello > a.txt',
  'cat $(touch x)',
  'ls `touch x`',
  'ls & touch x',
  'git push',
  'git diff --output=x',
  'rg --pre ./x y',
  'FOO=1 ls',
  'cat < x',
  'ls; npm test',
  'svc actor inbox; rm x',
  'svc actor send "$(rm x)"',
  'svc actor inbox > x',
  "svc actor 'a' & rm x",
  'svc actorx',
  'svc agents rm x',
  '/bin/bash -lc "echo \'hello\' > a.txt"',
])('%s is not known to be harmless', (command) => {
  expect(isHarmless(command)).toBe(false);
});
