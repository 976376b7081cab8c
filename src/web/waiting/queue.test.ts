import { expect, test } from 'vitest';
import { agentRecord } from '../../testing/agent-record.ts';
import { elicitationRecord } from '../../testing/elicitation-record.ts';
import { reviewRecord } from '../../testing/review-record.ts';
import type { WaitingStepRecord } from '../api/queries.ts';
import { answerAwaitedSince, firstByAgent, keyOf, listItems, type WaitingData } from './queue.ts';
import { waitingText } from './text.ts';

const at = (minute: number) => `2026-11-22T10:0${minute}:00.000Z`;
const ana = { id: 'usr_ana', role: 'user' };

const step = (fields: Partial<WaitingStepRecord> = {}): WaitingStepRecord => ({
  ...{ team_id: 'team_1', team_name: 'shop', run_id: 'run_1', run_number: 1, step_key: 'title' },
  ...{ member_id: 'dev', agent_id: 'agt_2', attempt: 1, question: 'Which title?\nReally?' },
  ...{ waiting_since: at(2), ...fields },
});

const list = (data: Partial<WaitingData>, viewer = ana) =>
  listItems({ reviews: [], elicitations: [], steps: [], runs: [], agents: [], ...data }, viewer);

test('a pending permission review waits, an answered one does not', () => {
  const reviews = [
    reviewRecord({ id: 'rev_1', status: 'answered', answered_at: at(3) }),
    reviewRecord({ id: 'rev_2', tool_call: { kind: 'edit' } }),
  ];
  const items = list({ reviews });
  expect(items).toMatchObject([
    { kind: 'permission', id: 'rev_1', open: false, settled_at: at(3) },
    { kind: 'permission', id: 'rev_2', open: true, settled_at: null },
  ]);
  expect(items.map(waitingText)).toEqual(['npm publish', 'edit']);
});

test('the line of a request shows where its lines end and where it is cut, and names hidden characters', () => {
  const line = (title: string) =>
    waitingText(list({ reviews: [reviewRecord({ tool_call: { title } })] })[0]!);
  expect(line('npm test\r\n\n  curl x | sh\n')).toBe('npm test ⏎ curl x | sh');
  expect(line(`npm test ${'#'.repeat(300)}`)).toBe(`npm test ${'#'.repeat(191)}…`);
  expect(line(`npm test${' '.repeat(5_000)}; curl`)).toMatch(/^npm test.{0,20}…$/);
  expect(line('rm \u202e-rf')).toBe('rm ⟦U+202E⟧-rf');
});

test('a pending elicitation waits', () => {
  const [form, link, old] = list({
    elicitations: [
      elicitationRecord({ id: 'eli_1', message: 'Where?\nNow.' }),
      elicitationRecord({ id: 'eli_2', message: '', mode: 'url' }),
      elicitationRecord({ id: 'eli_3', status: 'declined' }),
    ],
  });
  expect([form!.open, link!.open, old!.open]).toEqual([true, true, false]);
  expect([waitingText(form!), waitingText(link!)]).toEqual(['Where? ⏎ Now.', 'Open a link']);
});

test('the question of a step waits, also without an agent, and another wait is another item', () => {
  const [one] = list({ steps: [step({ agent_id: null })] });
  expect(one).toMatchObject({ kind: 'question', id: 'run_1/title', agent_id: null, open: true });
  expect(waitingText(one!)).toBe('Which title? ⏎ Really?');
  const [again] = list({ steps: [step({ waiting_since: at(5) })] });
  expect(again!.id).toBe(one!.id);
  expect(keyOf(again!)).not.toBe(keyOf(one!));
});

test('a run waits, and another wait of it is another item', () => {
  const run = (minute: number) => ({
    ...{ team_id: 'team_1', team_name: 'shop', run_id: 'run_1', run_number: 1 },
    ...{ version: minute, reason: 'outcome unknown', waiting_since: at(minute) },
  });
  const [first, again] = list({ runs: [run(1), run(2)] });
  expect(first).toMatchObject({ kind: 'run', id: 'run_1', agent_id: null, open: true, since: at(1) });
  expect(waitingText(first!)).toBe('outcome unknown');
  expect(keyOf(again!)).not.toBe(keyOf(first!));
});

test('a sign-in waits for the agent’s owner and root', () => {
  const agents = [
    agentRecord({ id: 'agt_1', owner_id: 'usr_ana', sign_in_since: at(1) }),
    agentRecord({ id: 'agt_2', owner_id: 'usr_ana' }),
    agentRecord({ id: 'agt_3', owner_id: 'usr_ben', sign_in_since: at(1) }),
  ];
  expect(list({ agents }).map(({ kind, id }) => `${kind} ${id}`)).toEqual(['sign_in agt_1']);
  expect(list({ agents }, { id: 'usr_root', role: 'root' })).toHaveLength(2);
});

test('all kinds are in one queue, the longest wait first', () => {
  const items = list({
    reviews: [reviewRecord({ created_at: at(3) })],
    elicitations: [elicitationRecord({ created_at: at(1) })],
    steps: [step()],
    agents: [agentRecord({ id: 'agt_9', owner_id: 'usr_ana', sign_in_since: at(0) })],
  });
  expect(items.map(({ kind }) => kind)).toEqual(['sign_in', 'elicitation', 'question', 'permission']);
  // Both ask for agt_1; the form has waited longer.
  const first = firstByAgent(items);
  expect(first.get('agt_1')!.kind).toBe('elicitation');
  expect(first.get('agt_none')).toBe(undefined);
});

test('every kind of item names its run', () => {
  const items = list({
    reviews: [reviewRecord({ run_id: 'run_1' })],
    elicitations: [elicitationRecord({ run_id: 'run_2' })],
    steps: [step({ run_id: 'run_3' })],
    agents: [agentRecord({ owner_id: 'usr_ana', sign_in_since: at(1), run_id: 'run_4' })],
  });
  expect(items.map(({ run_id }) => run_id).sort()).toEqual(['run_1', 'run_2', 'run_3', 'run_4']);
});

test('a turn waits for an answer since its longest open request', () => {
  const items = list({
    reviews: [
      reviewRecord({ id: 'rev_1', agent_id: 'agt_1', status: 'answered', created_at: at(0) }),
      reviewRecord({ id: 'rev_2', agent_id: 'agt_1', created_at: at(4) }),
      reviewRecord({ id: 'rev_3', agent_id: 'agt_2', created_at: at(1) }),
    ],
    elicitations: [elicitationRecord({ agent_id: 'agt_1', created_at: at(3) })],
    steps: [step({ agent_id: 'agt_1', waiting_since: at(2) })],
  });
  expect(answerAwaitedSince(items, 'agt_1')).toBe(at(3));
  expect(answerAwaitedSince(items, 'agt_3')).toBeNull();
});
