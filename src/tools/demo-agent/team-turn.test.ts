/** The demo agent in a team, with a fake `svc` on its PATH that records calls and returns prepared answers. */
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { membershipOf } from './team-turn.ts';
import { Driven, type DriveOptions } from './testing.ts';

const SVC = `#!/bin/sh
printf '%s\\n' "$*" >> "\${0%/*}/asked"
cat "\${0%/*}/$2.json" 2>/dev/null && exit 0
echo "svc: no $2 today" >&2
exit 1
`;

const team = [
  { actor_id: 'lead@team_1', member_id: 'lead', role: 'leader', description: '', skills: [] },
  { actor_id: 'red@team_1', member_id: 'red', role: 'worker', description: '', skills: [] },
  { actor_id: 'blue@team_1', member_id: 'blue', role: 'worker', description: '', skills: [] },
  { actor_id: 'user:ann', member_id: null, role: 'human', description: '', skills: [] },
];
const stepWords = 'Your step is "part-1".\n\nWrite a note about paint';

let dir: string;
let cwd: string;
let demo: Driven | null = null;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'svc-demo-'));
  cwd = join(dir, 'work');
  await mkdir(cwd);
  await mkdir(join(dir, 'bin'));
  await writeFile(join(dir, 'bin/svc'), SVC);
  await chmod(join(dir, 'bin/svc'), 0o755);
  await answer({ 'team-members': { members: team }, inbox: { messages: [] }, 'step-list': { steps: [] } });
  await answer({ ack: {}, send: {}, 'step-add': {}, 'step-input-required': {} });
});

afterEach(async () => {
  await demo?.close();
  demo = null;
  await rm(dir, { recursive: true });
});

async function answer(answers: Record<string, unknown>): Promise<void> {
  for (const [name, value] of Object.entries(answers)) {
    await writeFile(join(dir, `bin/${name}.json`), JSON.stringify(value));
  }
}

/** The calls of `svc`, without `actor` and keys. */
async function svcCalls(): Promise<string[]> {
  const lines = (await askedWhole()).map((line) => line.replace(/^actor /, ''));
  return lines.map((line) => line.replace(/ --idempotency-key \S+$/, ''));
}

async function askedWhole(): Promise<string[]> {
  const text = await readFile(join(dir, 'bin/asked'), 'utf8').catch(() => '');
  return text.split('\n').slice(0, -1);
}

async function open(
  member_id: string,
  { question = null, ...options }: Partial<DriveOptions> & { question?: string | null } = {},
) {
  const identity = { SVC_TEAM_ID: 'team_1', SVC_ACTOR_ID: `${member_id}@team_1`, SVC_MEMBER_ID: member_id };
  const env = { ...identity, PATH: `${join(dir, 'bin')}:/usr/bin:/bin` };
  demo = new Driven({ state_dir: join(dir, 'state'), membership: membershipOf(env, question), ...options });
  return { demo, session: await demo.open(cwd) };
}

function step(step_key: string, member_id: string, status: string) {
  return { step_key, member_id, status, prompt: 'Write a note about paint' };
}

function mail(id: number, from: string, payload: object, status = 'delivered') {
  return { id, from_actor_id: from, status, payload };
}

function lastMessage({ updates }: Driven): string {
  const kinds = updates.map(({ sessionUpdate }) => sessionUpdate);
  const from = Math.max(
    kinds.lastIndexOf('plan', kinds.lastIndexOf('agent_message_chunk')),
    kinds.lastIndexOf('tool_call_update'),
  );
  return updates
    .slice(from)
    .map((update) =>
      update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text'
        ? update.content.text
        : '',
    )
    .join('');
}

function note(): Promise<string | null> {
  return readFile(join(cwd, 'svc-demo.md'), 'utf8').catch(() => null);
}

test('a leader without steps sends each worker a hint and then adds a step, and says so', async () => {
  const { demo, session } = await open('lead');
  const prompt = 'Input of the run:\n<<<\n{\n  "title": "paint the shed"\n}\n>>>\n\nPlan the work.';
  expect(await demo.prompt(session, prompt)).toBe('end_turn');
  const [first, second, ...rest] = await svcCalls();
  expect([first, second]).toEqual(['team-members', 'step-list']);
  expect(rest.map((line) => line.replace(/ --p.*/, ''))).toEqual([
    'send --to red@team_1',
    'step-add --step-key part-1 --member red',
    'send --to blue@team_1',
    'step-add --step-key part-2 --member blue',
  ]);
  expect(rest[0]).toContain('“paint the shed”');
  expect(lastMessage(demo)).toBe('Assigned: part-1 for red, part-2 for blue.');
  expect(demo.requests).toEqual([]);
});

test('commands are shown as tool calls, with their output', async () => {
  const { demo, session } = await open('lead');
  await demo.prompt(session, 'Plan the work.');
  expect(demo.of('tool_call')[0]).toMatchObject({ kind: 'execute', title: 'svc actor team-members' });
  const content = [{ type: 'content', content: { type: 'text', text: JSON.stringify({ members: team }) } }];
  const ends = demo.of('tool_call_update').filter(({ status }) => status === 'completed');
  expect(ends[0]).toMatchObject({ content });
});

test('a leader whose steps are over acknowledges new mail and sums up', async () => {
  await answer({
    'step-list': { steps: [step('part-1', 'red', 'completed'), step('part-2', 'blue', 'failed')] },
    inbox: {
      messages: [
        mail(3, 'red@team_1', { type: 'report', text: 'done' }, 'acknowledged'),
        mail(4, 'user:ann', { text: 'hurry' }),
        mail(5, 'red@team_1', { text: 'too late' }, 'dead_letter'),
      ],
    },
  });
  const { demo, session } = await open('lead');
  await demo.prompt(session, 'Sum up.');
  expect(await svcCalls()).toEqual(['team-members', 'step-list', 'inbox --all', 'ack --message-id 4']);
  expect(lastMessage(demo).split('\n')).toEqual([
    '1 of 2 steps completed, 2 messages came in.',
    '- part-1 of red: completed',
    '- part-2 of blue: failed',
    '- red wrote: “done”',
    '- user:ann wrote: “hurry”',
  ]);
});

test('a worker reads its mail, writes its note if allowed, and reports to the leader before its last message', async () => {
  await answer({
    'step-list': { steps: [step('part-1', 'red', 'running')] },
    inbox: { messages: [mail(1, 'lead@team_1', { type: 'hint', text: 'short' }), mail(2, 'user:ann', {})] },
  });
  const { demo, session } = await open('red');
  expect(await demo.prompt(session, stepWords)).toBe('end_turn');
  const lines = await svcCalls();
  expect(lines.slice(0, -1)).toEqual([
    'team-members',
    'step-list --step-key part-1',
    'inbox',
    'ack --message-id 1 --message-id 2',
  ]);
  const last_message = lastMessage(demo);
  expect(last_message).toContain('`svc-demo.md`');
  expect(lines.at(-1)).toBe(
    `send --to leader --payload ${JSON.stringify({ type: 'report', text: `part-1: ${last_message}` })}`,
  );
  expect(demo.requests).toHaveLength(1);
  expect(await note()).toContain('Write a note about paint');
});

test('a worker in mode auto does not ask', async () => {
  await answer({ 'step-list': { steps: [step('part-1', 'red', 'running')] } });
  const { demo, session } = await open('red', { mode: 'auto' });
  await demo.prompt(session, stepWords);
  expect(demo.requests).toEqual([]);
  expect(await note()).toContain('paint');
});

test('a worker with a question makes its step wait once, and continues with the answer', async () => {
  await answer({ 'step-list': { steps: [step('part-1', 'red', 'running')] } });
  const { demo, session } = await open('red', { question: 'Which colour?' });
  expect(await demo.prompt(session, stepWords)).toBe('end_turn');
  expect((await svcCalls()).at(-1)).toBe('step-input-required --step-key part-1 --reason Which colour?');
  expect(lastMessage(demo)).toBe('Which colour?');
  expect(await note()).toBe(null);
  const answered = `${stepWords}\n\nAnswer to your question:\n<<<\nBlue\n>>>\n\nYour last message is its output.`;
  await demo.prompt(session, answered);
  expect(lastMessage(demo)).toMatch(/^The answer was “Blue”\. /);
  expect(await note()).toContain('paint');
});

test('a worker whose step resumes without an answer does not mistake other text for one', async () => {
  await answer({ 'step-list': { steps: [step('part-1', 'red', 'running')] } });
  const { demo, session } = await open('red', { question: 'Which colour?' });
  const prompt = `${stepWords}\n\nInput of the run:\n<<<\nBlue\n>>>\n\nYour last message is its output.`;
  await demo.prompt(session, prompt);
  await demo.prompt(session, prompt);
  expect(await note()).toContain('paint');
  expect(lastMessage(demo)).not.toContain('Blue');
});

test('messages that could not be acknowledged while the plane was away are acknowledged later', async () => {
  const lost = '[{"error":"failed to connect to remote node","message_id":1},{"message_id":2}]';
  const losing = `if [ $2 = ack ] && mkdir "\${0%/*}/ack.lost" 2> /dev/null; then echo '${lost}'; exit 1; fi\ncat`;
  await writeFile(
    join(dir, 'bin/svc'),
    SVC.replace('cat', () => losing),
  );
  const messages = [mail(1, 'user:ann', { text: 'a' }), mail(2, 'red@team_1', { type: 'report' })];
  await answer({ inbox: { messages } });
  const { demo, session } = await open('red');
  expect(await demo.prompt(session, '2 messages wait in your mailbox.')).toBe('end_turn');
  const ack = 'ack --message-id 1 --message-id 2';
  expect((await svcCalls()).slice(1, 4)).toEqual(['inbox', ack, ack]);
});

test('mail is acknowledged and answered, unless a demo agent wrote it', async () => {
  await answer({
    'step-list': { steps: [step('part-1', 'red', 'running')] },
    inbox: {
      messages: [
        mail(1, 'red@team_1', { type: 'report', text: 'done' }),
        mail(2, 'user:ann', { text: 'How far are you?' }),
        mail(3, 'blue@team_1', { type: 'answer', text: 'read' }),
      ],
    },
  });
  const { demo, session } = await open('lead');
  await demo.prompt(session, '3 messages wait in your mailbox.');
  expect((await svcCalls()).slice(2)).toEqual([
    'inbox',
    'ack --message-id 1 --message-id 2 --message-id 3',
    'send --to user:ann --payload {"type":"answer","text":"lead has read “How far are you?”.","to":2}',
  ]);
  expect(lastMessage(demo)).toContain('“done” from red');
});

test('does not work on a step that has ended or belongs to another member', async () => {
  for (const other of [step('part-1', 'blue', 'running'), step('part-1', 'red', 'completed')]) {
    await answer({ 'step-list': { steps: [other] }, inbox: { messages: [mail(1, 'user:ann', {})] } });
    const { demo, session } = await open('red');
    await demo.prompt(session, `Message 1 from user:ann: step is "part-1"`);
    expect(await note()).toBe(null);
    await demo.close();
  }
});

test('a prompt that is not from the team is an ordinary one', async () => {
  const { demo, session } = await open('red');
  await demo.prompt(session, 'Tidy up');
  expect(await svcCalls()).toEqual(['team-members', 'inbox']);
  expect(await note()).toContain('“Tidy up”');
});

test('repeats commands while the plane is away, and recognizes a step that was added already', async () => {
  const losing = `case $2 in send | step-add)
  if mkdir "\${0%/*}/$2.lost" 2> /dev/null; then echo 'svc: failed to connect to remote node' >&2; exit 1; fi
esac
if [ $2 = step-add ]; then
  mv "\${0%/*}/added" "\${0%/*}/step-list.json"; echo 'svc: step already exists for run' >&2; exit 1
fi
cat`;
  await writeFile(
    join(dir, 'bin/svc'),
    SVC.replace('cat', () => losing),
  );
  await writeFile(join(dir, 'bin/added'), JSON.stringify({ steps: [step('part-1', 'red', 'running')] }));
  await answer({ 'team-members': { members: team.slice(0, 2) } });
  const { demo, session } = await open('lead');
  expect(await demo.prompt(session, 'Plan the work.')).toBe('end_turn');
  expect(lastMessage(demo)).toBe('Assigned: part-1 for red.');
  expect((await svcCalls()).map((line) => line.split(' ')[0])).toEqual([
    ...['team-members', 'step-list', 'send', 'send', 'step-add', 'step-add', 'step-list'],
  ]);
  const sent = (await askedWhole()).filter((line) => line.includes(' send '));
  expect(sent[0]).toMatch(/ --idempotency-key [0-9a-f-]{36}$/);
  expect(sent[1]).toBe(sent[0]);
});

test('a command that fails ends the turn with refusal and its reason', async () => {
  await rm(join(dir, 'bin/inbox.json'));
  const { demo, session } = await open('red');
  expect(await demo.prompt(session, 'Tidy up')).toBe('refusal');
  expect(lastMessage(demo)).toBe('I cannot reach my team: svc: no inbox today');
  expect(demo.of('tool_call_update').at(-1)).toMatchObject({ status: 'failed' });
  await answer({ inbox: 'nonsense' });
  expect(await demo.prompt(session, 'Tidy up')).toBe('refusal');
  expect(demo.messageText()).toContain('svc actor inbox printed unexpected output');
});

test('there is no team without its variables', async () => {
  expect(membershipOf({ SVC_ACTOR_ID: 'agt_1' }, null)).toBe(null);
});
