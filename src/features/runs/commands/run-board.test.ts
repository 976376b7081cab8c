import { PassThrough } from 'node:stream';
import stringWidth from 'fast-string-width';
import { describe, expect, test } from 'vitest';
import type { Io } from '../../../cli/context.ts';
import { LiveRegion } from '../../../cli/live-region.ts';
import type { ReviewRecord } from '../../reviews/commands/review-lines.ts';
import type { Run, Step } from '../rules/run.ts';
import { type Board, boardLines } from './run-board.ts';

const time = '2026-01-01T00:00:00.000Z';
const now_ms = Date.parse(time) + 5_000;
const dev = { member_id: 'dev', description: '', skills: [], prompt: '', agent: null };
const screen = { rows: 24, columns: 100, colored: false };

const run = (fields: Partial<Run> = {}): Run => ({
  ...{ id: 'run_1', number: 1, team_id: 'team_1', task_id: 'task_1', status: 'running', input: {} },
  ...{
    output: null,
    error: null,
    attempt: 1,
    version: 1,
    attention: null,
    created_by: 'usr_1',
    created_by_name: 'ana',
  },
  ...{ created_at: time, started_at: time, ended_at: null },
  spec: {
    ...{ spec_version: 1, entrypoint: { type: 'task' }, members: [dev], leader_member_id: null },
    ...{ steps: [], review_route: 'human', max_rounds: 20 },
  },
  ...fields,
});

const step = (step_key: string, status: Step['status'], fields: Partial<Step> = {}): Step => ({
  ...{ run_id: 'run_1', step_key, member_id: 'dev', depends_on: [], when: 'on_success', prompt: '' },
  ...{ status, input: null, output: null, error_text: null, attempt: 0, max_attempts: 1 },
  ...{ timeout_seconds: null, agent_id: null, started_at: null, ended_at: null, waiting_since: null },
  ...{ answer: null, answered_by: null },
  ...fields,
});

const review = {
  id: 'rev_1',
  tool_call: { title: 'rm -rf /' },
  options: [{ option_id: 'ok', name: 'Yes', kind: 'allow_once' }],
} as unknown as ReviewRecord;

const board = (steps: Step[], fields: Partial<Board> = {}): Board => ({
  title: 'site#1',
  run: run(),
  steps: new Map(steps.map((step) => [step.step_key, step])),
  reviews: [],
  note: null,
  ...fields,
});

describe('the board of a run', () => {
  test('shows each step with its attempt, its time, and what it waits for or why it ended', () => {
    const lines = boardLines(
      board([
        step('a', 'completed', { attempt: 1, started_at: time, ended_at: '2026-01-01T00:00:03.000Z' }),
        step('b', 'running', { attempt: 2, started_at: time }),
        step('c', 'pending', { depends_on: ['a', 'b'] }),
        step('d', 'ready'),
        step('e', 'failed', { error_text: 'no\nway' }),
      ]),
      screen,
      now_ms,
    );
    expect(lines).toEqual([
      'site#1  run_1  running  5s  attempt 1',
      '5 steps: 1 completed, 1 running, 1 pending, 1 ready, 1 failed',
      'STEP  MEMBER  STATUS     TRY  TIME  NOTE',
      'a     dev     completed  1    3s',
      'b     dev     running    2    5s',
      'c     dev     pending    0          waits for b',
      'd     dev     ready      0          waits for its member',
      'e     dev     failed     0          no way',
    ]);
  });

  test('of 2,048 steps, shows those that are active or need attention, and counts the others', () => {
    const steps = Array.from({ length: 2_048 }, (_, at) =>
      step(`s${at}`, at < 1_000 ? 'completed' : 'pending'),
    );
    steps[700] = step('moves', 'running');
    steps[1_500] = step('asks', 'input_required', { error_text: 'which?' });
    steps[3] = step('broken', 'failed', { error_text: 'x' });
    steps[1_000] = step('s1000', 'pending', {
      depends_on: steps.slice(1_001, 2_000).map((step) => step.step_key),
    });
    const lines = boardLines(board(steps), screen, now_ms);
    expect(lines).toHaveLength(screen.rows);
    expect(lines[5]).toMatch(/ waits for s1001, s1002, s1003, s1004, s1005 and 994 more$/);
    const keys = lines.slice(3, -3).map((line) => line.split(' ')[0]);
    expect(keys.slice(0, 4)).toEqual(['broken', 'moves', 's1000', 's1001']);
    expect(keys.at(-1)).toBe('asks');
    expect(lines.at(-3)).toBe('… 2030 more: 998 completed, 1032 pending');
    expect(lines.slice(-2)).toEqual([
      'step asks waits for an answer: which?',
      '  svc steps resume run_1 asks --input <json>',
    ]);
  });

  test('never exceeds the width and the height of the screen', () => {
    const steps = Array.from({ length: 30 }, (_, at) =>
      step(`日本${'x'.repeat(90)}${at}`, 'input_required', { error_text: '\x1b[2J'.repeat(50) }),
    );
    for (const rows of [1, 2, 3, 5, 10, 40]) {
      for (const columns of [1, 10, 79]) {
        const size = { rows, columns, colored: false };
        const lines = boardLines(board(steps, { reviews: [review], note: 'gone' }), size, now_ms);
        expect(lines.length).toBeLessThanOrEqual(rows);
        expect(lines.filter((line) => stringWidth(line) > columns || line.includes('\x1b'))).toEqual([]);
      }
    }
  });

  test('lists the reviews of its agents below, with the commands that answer them', () => {
    const lines = boardLines(
      board([], { reviews: [review], run: run({ attention: 'look' }) }),
      screen,
      now_ms,
    );
    expect(lines).toEqual([
      'site#1  run_1  running  5s  attempt 1',
      'no steps',
      'look',
      'the run waits for its result',
      '  svc runs complete run_1 --output <json>',
      'review rev_1  rm -rf /',
      '  svc reviews allow rev_1   svc reviews respond rev_1 --option-id <option>   svc reviews show rev_1',
    ]);
  });

  test('shows how a waiting run can continue, and requests no input after its end', () => {
    const waits = run({ status: 'input_required', error: 'no rounds left' });
    expect(boardLines(board([], { run: waits }), screen, now_ms).slice(2)).toEqual([
      'the run waits for an answer: no rounds left',
      '  svc runs resume run_1',
    ]);
    const over = run({ status: 'failed', ended_at: time });
    expect(boardLines(board([step('a', 'input_required')], { run: over }), screen, now_ms)).toHaveLength(4);
    const done = run({ status: 'completed', output: { pdf: 'a\x1bb' } });
    expect(boardLines(board([], { run: done }), screen, now_ms).at(-1)).toBe('output {"pdf":"a\\u001bb"}');
  });
});

describe('drawing in place', () => {
  async function draw(sizes: { rows: number; columns: number }[], lines: string[]): Promise<string[]> {
    const stdout: Io['stdout'] = new PassThrough();
    const region = new LiveRegion({ stdout } as Io);
    const drawn: string[] = [];
    for (const size of sizes) {
      Object.assign(stdout, size);
      await region.draw(lines);
      drawn.push(String((stdout as PassThrough).read()));
    }
    return drawn;
  }

  test('moves to the first line and erases the previous lines in one write', async () => {
    const drawn = await draw(
      [
        { rows: 24, columns: 80 },
        { rows: 24, columns: 80 },
      ],
      ['one', 'two'],
    );
    expect(drawn).toEqual([
      '\x1b[?2026h\rone\x1b[K\ntwo\x1b[K\n\x1b[J\x1b[?2026l',
      '\x1b[?2026h\x1b[2Fone\x1b[K\ntwo\x1b[K\n\x1b[J\x1b[?2026l',
    ]);
  });

  test('lines that a narrower terminal has wrapped count as several, up to the height of the screen', async () => {
    const [, narrow] = await draw(
      [
        { rows: 24, columns: 80 },
        { rows: 24, columns: 10 },
      ],
      ['x'.repeat(25)],
    );
    expect(narrow).toContain('\x1b[3F');
    const [, low] = await draw(
      [
        { rows: 24, columns: 80 },
        { rows: 3, columns: 10 },
      ],
      ['x'.repeat(70)],
    );
    expect(low).toContain('\x1b[2F');
  });
});
