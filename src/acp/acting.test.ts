import { describe, expect, it, test } from 'vitest';
import {
  type Acting,
  isReadOnlyCommand,
  noObservations,
  observedBehavior,
  recordCall,
  recordRequest,
} from './acting.ts';
import { limits } from './limits.ts';

const seen = (acting: Acting, ...updates: Record<string, unknown>[]) => updates.reduce(recordCall, acting);
const ran = { toolCallId: 'c1', status: 'completed' };

describe('an agent', () => {
  it.each(['edit', 'delete', 'move', 'execute', 'fetch'])(
    'acts without asking if a %s call completes without a permission request',
    (kind) => {
      const acting = seen(noObservations, { ...ran, kind, title: 'Do it', status: 'pending' }, ran);
      expect(acting).toMatchObject({ unasked: 'Do it', calls: [] });
      expect(observedBehavior(acting)).toBe('acts');
    },
  );

  it.each(['read', 'search', 'think', 'switch_mode', 'other', undefined])(
    'reveals nothing by a %s call',
    (kind) => {
      expect(observedBehavior(seen(noObservations, { ...ran, kind, status: 'pending' }, ran))).toBe(
        'unknown',
      );
    },
  );

  it('asks if the request comes before or after its call is reported', () => {
    const call = { toolCallId: 'c1', kind: 'edit', title: 'Write' };
    const before = recordRequest(noObservations, call);
    const later = recordRequest(seen(noObservations, { ...call, status: 'in_progress' }), call);
    for (const acting of [before, later]) expect(observedBehavior(recordCall(acting, ran))).toBe('asks');
  });

  it('acts without asking if one of its calls had no request', () => {
    const permit = seen(recordRequest(noObservations, { toolCallId: 'c1', kind: 'edit' }), ran);
    const acting = seen(permit, { ...ran, toolCallId: 'c2', kind: 'execute', rawInput: { command: 'make' } });
    expect(observedBehavior(acting)).toBe('acts');
    expect(observedBehavior(recordRequest(acting, { toolCallId: 'c3' }))).toBe('acts');
  });

  it('reveals nothing by a call that failed, or that was always allowed before', () => {
    expect(observedBehavior(seen(noObservations, { ...ran, kind: 'edit', status: 'failed' }))).toBe(
      'unknown',
    );
    const allowed = { ...noObservations, requested: true, allowed_always: true };
    expect(observedBehavior(seen(allowed, { ...ran, kind: 'edit' }))).toBe('asks');
  });

  it('may run read-only commands without a request', () => {
    const call = { toolCallId: 'c1', kind: 'execute', status: 'pending', rawInput: {} };
    const reads = seen(noObservations, call, { ...call, rawInput: { command: 'git status' } }, ran);
    expect(observedBehavior(reads)).toBe('unknown');
    expect(
      observedBehavior(seen(noObservations, call, { ...call, rawInput: { command: 'git push' } }, ran)),
    ).toBe('acts');
  });

  it('keeps a bounded number of calls, and none without an id', () => {
    let acting = noObservations;
    for (let n = 0; n <= limits.acting_calls_max; n++) {
      acting = recordCall(acting, { toolCallId: `c${n}`, kind: 'edit', title: 'x'.repeat(10_000) });
    }
    expect(acting.calls).toHaveLength(limits.acting_calls_max);
    expect(acting.calls[0]).toMatchObject({ id: 'c1', title: 'x'.repeat(limits.acting_title_chars_max) });
    expect(recordCall(acting, { kind: 'edit', status: 'completed' })).toBe(acting);
    expect(recordRequest(noObservations, undefined)).toEqual({ ...noObservations, requested: true });
  });
});

test.each([
  'ls -la',
  'cat a.txt | head -5',
  'cd src && git log --oneline',
  'grep -r x . 2>/dev/null; wc -l a',
  'ls >/dev/null 2>&1 && cat a 2>&1|head;pwd > /dev/null',
  '/bin/bash -lc "git diff HEAD"',
  "bash -c 'pwd'",
  'svc actor inbox --limit 5',
  `svc actor send --to leader --payload '{"text": "a; b > c, it'\\''s $(d)"}'`,
])('%s is harmless', (command) => {
  expect(isReadOnlyCommand(command)).toBe(true);
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
  'echo x >&2file',
  'echo x >&2"$name"',
  'echo x 2>&1>file',
  'echo x >&2\u00a0file',
  'echo x > /dev/nullish',
  'echo x >/dev/null/../../tmp/file',
  'echo x >\u00a0/dev/null',
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
  expect(isReadOnlyCommand(command)).toBe(false);
});
