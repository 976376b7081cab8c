import { beforeEach, expect, test } from 'vitest';
import type { Node, ProgramFinding, ProgramQuestion } from '../../core/node.ts';
import { problems } from '../../core/problem.ts';
import { TestClock } from '../../testing/accounts.ts';
import type { Caller } from '../accounts/rules.ts';
import { limits } from './limits.ts';
import { Presets, type PresetsOptions } from './service.ts';

const caller: Caller = {
  user_id: 'usr_1',
  username: 'ada',
  role: 'user',
  token_id: 'tok_1',
  grant: null,
  ip: null,
};
const there = { path: '/bin/x', version: '1', env_set: [], files_found: [] };

let clock: TestClock;
let query_count: number;
let answer: (questions: readonly ProgramQuestion[]) => Promise<ProgramFinding[]>;
let presets: Presets;
beforeEach(() => {
  clock = new TestClock();
  query_count = 0;
  answer = async (questions) => questions.map(() => ({ ...there, version: String(query_count) }));
  const probe: Node['probe'] = (questions) => {
    query_count += 1;
    return answer(questions);
  };
  const node = { id: 'main', probe } as Partial<Node> as Node;
  const nodes: PresetsOptions['nodes'] = {
    choose: (id = 'main') => id,
    get: (id) => {
      if (id === 'gone') throw problems.nodeNotFound();
      return node;
    },
  };
  presets = new Presets({ clock, nodes });
});

async function version(refresh = false, node_id = 'main'): Promise<string | null> {
  const found = await presets.list(caller, node_id, refresh);
  return found.find(({ id }) => id === 'gemini')!.version;
}

test('lists every preset, including those without a program', async () => {
  const list = await presets.list(caller, 'main', false);
  expect(list).toHaveLength(13);
  expect(list[1]).toMatchObject({ id: 'claude', installed: true, path: '/bin/x', version: '1' });
  expect(list.at(-1)).toMatchObject({ id: 'plain', installed: null });
});

test('queries each node at most once a minute, unless refreshed', async () => {
  expect([await version(), await version()]).toEqual(['1', '1']);
  expect([await version(true), await version()]).toEqual(['2', '2']);
  expect(await version(false, 'other')).toBe('3');
  clock.advance(limits.presets_keep_ms - 1);
  expect(await version()).toBe('2');
  clock.advance(1);
  expect(await version()).toBe('4');
});

test('concurrent callers share one query', async () => {
  const held = Promise.withResolvers<void>();
  const usual = answer;
  answer = async (questions) => {
    await held.promise;
    return usual(questions);
  };
  const waiting = [version(), version(true), version()];
  held.resolve();
  expect(await Promise.all(waiting)).toEqual(['1', '1', '1']);
});

test('distinguishes an unknown node from an unreachable one, which it queries again', async () => {
  await expect(version(false, 'gone')).rejects.toThrow('agent node not found');
  const usual = answer;
  answer = async () => {
    throw problems.nodeUnreachable();
  };
  await expect(version()).rejects.toThrow('failed to connect to remote node');
  answer = usual;
  expect(await version()).toBe('2');
});

test('returns unknown for a node that is too old', async () => {
  answer = async () => {
    throw problems.nodeTooOld();
  };
  const list = await presets.list(caller, 'main', false);
  expect(list[1]).toMatchObject({ id: 'claude', installed: null, path: null, signed_in: 'unknown' });
});
