import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { problems } from '../../../core/problem.ts';
import type { HttpServer } from '../../../server/server.ts';
import { agentRecord, time } from '../../../testing/agent-record.ts';
import { run } from '../../../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN } from '../../../testing/http.ts';
import { reviewRecord } from '../../../testing/review-record.ts';
import type { Review } from '../rules.ts';

const options = [
  { option_id: 'y', name: 'Yes', kind: 'allow_once' },
  { option_id: 'a', name: 'Always', kind: 'allow_always' },
  { option_id: 'n', name: 'No', kind: 'reject_once' },
];
const review = (fields: Partial<Review> = {}) => reviewRecord({ options, ...fields });

let home: string;
let server: HttpServer | null;
let env: Record<string, string>;
let request: Record<string, unknown>;
let answers: unknown[];
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-reviews-'));
  server = null;
  request = {};
  answers = [];
});
afterEach(async () => {
  await server?.drain();
  rmSync(home, { recursive: true, force: true });
});

async function open(all: Review[], refuse?: () => Error): Promise<void> {
  server = await openFakeHttp({
    listAgents: () => ({ items: [agentRecord({})] }),
    getAgent: () => agentRecord({}),
    listReviews: ({ query }) => {
      request = query;
      return { items: all.filter(({ status }) => query.status === undefined || status === query.status) };
    },
    getReview: ({ params }) => all.find(({ id }) => id === params.review_id)!,
    respondReview: ({ params, body }) => {
      if (refuse) throw refuse();
      answers.push({ id: params.review_id, ...body });
      return review({ status: 'answered', option_id: 'y', answered_by: 'root', answered_at: time });
    },
  });
  env = { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN };
}

const cli = (...argv: string[]) => run(['reviews', ...argv], { home, env });

test('ls shows pending reviews, and all with --all', async () => {
  const over = review({ id: 'rev_2', agent_id: 'agt_9', status: 'answered', answered_at: time });
  await open([review({ created_at: new Date().toISOString() }), over]);
  const waiting = await cli('ls', '--agent', 'one');
  expect(waiting.stdout).toMatch(/^rev_1\tone\t\d+s\tnpm publish\ty, a, n\n$/);
  expect(request).toMatchObject({ status: 'pending', agent_id: 'agt_1' });
  const all = await cli('ls', '--all');
  expect(all.stdout.split('\n')[1]).toBe('rev_2\tagt_9\tanswered\t0s\tnpm publish\ty, a, n');
  expect(JSON.parse((await cli('ls', '--json')).stdout)).toMatchObject([{ id: 'rev_1', options }]);
});

test('a review of a sub-agent shows who asks', async () => {
  const by = (name: string | null, unknown_session = false) => ({ id: 's1', name, unknown_session });
  await open([
    review({ id: 'rev_1', subagent: by('explorer\x1b') }),
    review({ id: 'rev_2', subagent: by(null) }),
    review({ id: 'rev_3', subagent: by(null, true) }),
  ]);
  const what = (await cli('ls')).stdout.split('\n').map((line) => line.split('\t')[3]);
  expect(what.slice(0, 3)).toEqual([
    'npm publish (sub-agent explorer\\x1b)',
    'npm publish (sub-agent s1)',
    'npm publish (unknown session s1)',
  ]);
  expect((await cli('show', 'rev_1')).stdout).toContain('\nasker    sub-agent explorer\\x1b\n');
});

test('show says which parts of the request are missing', async () => {
  const tool_call = { title: 'Write', _meta: { svc: { omitted: ['content', 'raw\x1bInput'] } } };
  await open([review({ tool_call })]);
  const missing = 'without content, raw\\x1bInput; see svc logs agt_1 --json';
  expect((await cli('show', 'rev_1')).stdout).toContain(`too large to show in full, ${missing}\n`);
});

test('show prints everything that the agent wants to do', async () => {
  const tool_call = {
    title: 'Write \x1b[2Ja.ts',
    kind: 'edit',
    locations: [{ path: '/w/a.ts', line: 3 }],
    rawInput: { command: 'sed -n 1p\nrm -rf /', nested: { deep: [1] } },
    content: [
      { type: 'content', content: { type: 'text', text: 'why' } },
      { type: 'diff', path: '/w/a.ts', oldText: 'one', newText: 'two\n\tthree' },
    ],
  };
  await open([review({ tool_call, created_at: new Date().toISOString() })]);
  const { stdout } = await cli('show', 'rev_1');
  expect(stdout.replace(/waits {4}\d+s/, 'waits    0s')).toBe(`rev_1  pending
agent    one  agt_1
folder   /w  main
waits    0s
wants    Write \\x1b[2Ja.ts  edit  /w/a.ts:3
  command:
    sed -n 1p
    rm -rf /
  nested: {"deep":[1]}
  why
--- /w/a.ts
+++ /w/a.ts
@@ -1,1 +1,2 @@
-one
+two
+\tthree
options
  [y]  Yes  (allow_once)
  [a]  Always  (allow_always)
  [n]  No  (reject_once)
svc reviews allow rev_1
svc reviews deny rev_1
svc reviews respond rev_1 --option-id <option>
svc reviews respond rev_1 --cancel
`);
  expect(JSON.parse((await cli('get', 'rev_1', '--json')).stdout)).toMatchObject({ tool_call });
});

test('a decision answers the named review, or the only pending one', async () => {
  await open([review({})]);
  const allowed = await cli('allow', 'rev_1');
  expect(allowed).toMatchObject({ code: 0, stdout: '', stderr: 'rev_1  Yes: npm publish\n' });
  expect(JSON.parse((await cli('deny', '--json')).stdout)).toMatchObject({ answered_by: 'root' });
  expect(answers).toEqual([
    { id: 'rev_1', decision: 'allow' },
    { id: 'rev_1', decision: 'deny' },
  ]);
});

test('completes ids of pending reviews', async () => {
  await open([review({}), review({ id: 'rev_2', status: 'answered' })]);
  const completed = await run(['__complete', '--', 'reviews', 'allow', ''], { home, env });
  expect(completed.stdout).toBe('rev_1\n');
});

test('requires an id if several are pending, or none', async () => {
  await open([review({}), review({ id: 'rev_2' })]);
  expect(await cli('allow')).toMatchObject({
    code: 1,
    stderr:
      'svc: 2 reviews are pending: pass the id of one\nsvc: rev_1  one  npm publish\nsvc: rev_2  one  npm publish\n',
  });
  await server?.drain();
  await open([review({ status: 'answered' })]);
  expect(await cli('deny')).toMatchObject({ code: 1, stderr: 'svc: no review is pending\n' });
  expect(answers).toEqual([]);
});

test('lists the options if a decision does not match exactly one', async () => {
  await open([review({})], problems.optionIdRequired);
  expect(await cli('allow', 'rev_1')).toMatchObject({
    code: 1,
    stderr: [
      'svc: option_id is required',
      'svc:   [y]  Yes  (allow_once)',
      'svc:   [a]  Always  (allow_always)',
      'svc:   [n]  No  (reject_once)',
      'svc: svc reviews respond rev_1 --option-id <option>',
      '',
    ].join('\n'),
  });
});

test('respond sends an option or cancels', async () => {
  await open([review({})]);
  expect((await cli('respond', 'rev_1', '--option-id', 'a')).code).toBe(0);
  expect((await cli('respond', 'rev_1', '--cancel')).code).toBe(0);
  expect(answers).toEqual([
    { id: 'rev_1', option_id: 'a' },
    { id: 'rev_1', outcome: 'cancelled' },
  ]);
  expect((await cli('respond', 'rev_1')).code).toBe(2);
  expect((await cli('respond', 'rev_1', '--cancel', '--option-id', 'a')).code).toBe(2);
});

test('ls names what else waits for a person', async () => {
  server = await openFakeHttp({
    listReviews: () => ({ items: [] }),
    listAgents: () => ({
      items: [
        agentRecord({ id: 'agt_1', name: 'forms', needs_you: 'question', pending_elicitations: 2 }),
        agentRecord({ id: 'agt_2', name: 'signs', needs_you: 'sign_in', sign_in_since: time }),
        agentRecord({ id: 'agt_3', name: 'works' }),
      ],
    }),
    listWaitingSteps: () => ({
      items: [
        {
          ...{ team_id: 'team_1', team_name: 'site', run_id: 'run_1', run_number: 3, step_key: 'title' },
          ...{ member_id: 'dev', agent_id: null, attempt: 1, question: 'Which?', waiting_since: time },
        },
      ],
    }),
    listWaitingRuns: () => ({
      items: [
        {
          ...{ team_id: 'team_1', team_name: 'site', run_id: 'run_2', run_number: 4, waiting_since: time },
          ...{ version: 7, reason: 'the leader has used its 20\nrounds' },
        },
        {
          ...{ team_id: 'team_2', team_name: 'shop', run_id: 'run_3', run_number: 1, waiting_since: time },
          ...{ version: 2, reason: '' },
        },
      ],
    }),
  });
  env = { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN };
  const { stdout, stderr } = await run(['reviews', 'ls'], { home, env, tty: true });
  expect(stdout).toBe('');
  expect(stderr.split('\n')).toEqual([
    'none',
    '2 elicitations (forms and links): svc elicitations ls',
    '1 question of steps: svc steps waiting',
    'site#4 waits (the leader has used its 20\\x0arounds): svc runs resume run_2',
    'shop#1 waits: svc runs resume run_3',
    'signs needs a sign-in: svc agents config agt_2',
    '',
  ]);
  expect(await cli('ls')).toMatchObject({ stdout: '', stderr: '' });
  // The runs do not wait for this agent.
  const of_agent = await run(['reviews', 'ls', '--agent', 'signs'], { home, env, tty: true });
  expect(of_agent.stderr).toBe('none\nsigns needs a sign-in: svc agents config agt_2\n');
});

test('ls needs no rights besides those for reviews', async () => {
  server = await openFakeHttp({
    listReviews: () => ({ items: [] }),
    listAgents: () => ({ items: [] }),
    listWaitingSteps: () => {
      throw problems.notAllowed();
    },
  });
  env = { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN };
  const listed = await run(['reviews', 'ls'], { home, env, tty: true });
  expect(listed).toMatchObject({ code: 0, stderr: 'none\n' });
});
