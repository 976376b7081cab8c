import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { invalid } from '../../../core/problem.ts';
import type { HttpServer } from '../../../server/server.ts';
import { agentRecord, time } from '../../../testing/agent-record.ts';
import { run } from '../../../testing/cli.ts';
import { elicitationRecord, formField } from '../../../testing/elicitation-record.ts';
import { openFakeHttp, ROOT_TOKEN } from '../../../testing/http.ts';
import type { Elicitation } from '../rules.ts';

const choices = ['eu', 'us'].map((value) => ({ value, title: value.toUpperCase(), description: null }));
const fields = [
  formField('name', {
    title: 'Name\x1b[2J',
    description: 'Of the\nrelease',
    required: true,
    min: 2,
    max: 20,
  }),
  formField('port', { type: 'integer', min: 1024, default: 3000 }),
  formField('notify', { type: 'boolean', default: true }),
  formField('region', { type: 'choice', choices, required: true }),
  formField('checks', { type: 'choices', choices, min: 1 }),
  formField('slug', { pattern: '^(a+)+$', format: 'email' }),
];
const form = { title: 'Deployment', description: null, fields };
const elicitation = (more: Partial<Elicitation> = {}) => elicitationRecord({ form, ...more });
const link = elicitation({
  id: 'eli_2',
  mode: 'url',
  form: null,
  message: '',
  url: 'https://xn--pypal-4ve.com/a?b=1',
});

let home: string;
let server: HttpServer | null;
let env: Record<string, string>;
let query: Record<string, unknown>;
let answers: unknown[];
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-elicitations-'));
  server = null;
  answers = [];
});
afterEach(async () => {
  await server?.drain();
  rmSync(home, { recursive: true, force: true });
});

async function open(all: Elicitation[], refuse?: () => Error): Promise<void> {
  const find = (id: string) => all.find((item) => item.id === id)!;
  server = await openFakeHttp({
    listAgents: () => ({ items: [agentRecord({})] }),
    getAgent: () => agentRecord({}),
    listElicitations: (call) => {
      query = call.query;
      return {
        items: all.filter(({ status }) => call.query.status === undefined || status === call.query.status),
      };
    },
    getElicitation: ({ params }) => find(params.elicitation_id),
    respondElicitation: ({ params, body }) => {
      if (refuse) throw refuse();
      answers.push({ id: params.elicitation_id, ...body });
      const status = ({ accept: 'accepted', decline: 'declined', cancel: 'cancelled' } as const)[body.action];
      return { ...find(params.elicitation_id), status, answered_by: 'root', answered_at: time };
    },
  });
  env = { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN };
}

const cli = (...argv: string[]) => run(['elicitations', ...argv], { home, env });

test('ls shows pending elicitations, and with --all the others too', async () => {
  const now = new Date().toISOString();
  await open([elicitation({ created_at: now }), { ...link, status: 'declined', answered_at: time }]);
  expect((await cli('ls', '--agent', 'one')).stdout).toMatch(/^eli_1\tone\t\d+s\tform\tWhere to\?\n$/);
  expect(query).toMatchObject({ status: 'pending', agent_id: 'agt_1' });
  const all = await cli('ls', '--all');
  expect(all.stdout.split('\n')[1]).toBe('eli_2\tone\tdeclined\t0s\turl\thttps://xn--pypal-4ve.com/a?b=1');
  expect(JSON.parse((await cli('ls', '--json')).stdout)).toMatchObject([{ id: 'eli_1', form }]);
});

test('show prints the whole form and neutralizes control characters from the agent', async () => {
  const message = 'Where\n\x1b]0;evil\x07to?\u202e';
  await open([elicitation({ message, created_at: new Date().toISOString() })]);
  const { stdout } = await cli('show');
  expect(stdout.replace(/waits {4}\d+s/, 'waits    0s')).toBe(`eli_1  pending
agent    one  agt_1
folder   /w  main
waits    0s
asks     Where
         \\x1b]0;evil\\x07to?⟦U+202E⟧
form     Deployment
  name  Name\\x1b[2J
    required, at least 2 characters, at most 20 characters, text
    Of the
    release
  port
    optional, default 3000, at least 1024, integer
  notify
    optional, default true, true or false
  region
    required, one of
    [eu]  EU
    [us]  US
  checks
    optional, at least 1 entries, any of (repeat --set)
    [eu]  EU
    [us]  US
  slug
    optional, pattern ^(a+)+$ (the agent checks it), email
svc elicitations answer eli_1 --set name=<value> --set region=<value>
svc elicitations decline eli_1
svc elicitations cancel eli_1
`);
});

test('show prints the host before the URL', async () => {
  await open([link]);
  const { stdout } = await cli('show', 'eli_2');
  expect(stdout).toContain('host     xn--pypal-4ve.com\nurl      https://xn--pypal-4ve.com/a?b=1\n');
  expect(stdout).toContain('svc elicitations answer eli_2\n');
});

test('a field name is put in a suggested command only if it is a plain word', async () => {
  const hostile = formField('$(reboot); x', { required: true });
  await open([elicitation({ form: { ...form, fields: [hostile] } })]);
  const { stdout } = await cli('show');
  expect(stdout).toContain('svc elicitations answer eli_1 --content <json>\n');
  expect(stdout).not.toMatch(/^svc.*reboot/m);
});

test('answer converts values by type, and sends defaults for fields that are not set', async () => {
  await open([elicitation()]);
  const set = ['name=v=1', 'notify=false', 'region=eu', 'checks=eu', 'checks=us'];
  const done = await cli('answer', ...set.flatMap((pair) => ['--set', pair]));
  const content = { port: 3000, notify: false, name: 'v=1', region: 'eu', checks: ['eu', 'us'] };
  expect(done).toMatchObject({ code: 0, stdout: '' });
  expect(done.stderr).toBe(`eli_1  accepted: Where to?\n  sent: ${JSON.stringify(content)}\n`);
  await cli('answer', 'eli_1', '--set', 'port=many', '--set', 'other=1');
  await cli('answer', 'eli_1', '--content', '{"name":"v2","port":8080}');
  expect(answers).toEqual([
    { id: 'eli_1', action: 'accept', content },
    { id: 'eli_1', action: 'accept', content: { port: 'many', notify: true, other: '1' } },
    { id: 'eli_1', action: 'accept', content: { name: 'v2', port: 8080 } },
  ]);
});

test('answer accepts a URL and prints it; decline and cancel take no values', async () => {
  await open([link]);
  expect((await cli('answer')).stderr).toBe(
    'eli_2  accepted: https://xn--pypal-4ve.com/a?b=1\n  open: https://xn--pypal-4ve.com/a?b=1\n',
  );
  expect((await cli('decline', 'eli_2')).code).toBe(0);
  expect((await cli('cancel')).code).toBe(0);
  expect(answers).toEqual(['accept', 'decline', 'cancel'].map((action) => ({ id: 'eli_2', action })));
});

test('a rejected value is explained with the list of fields', async () => {
  await open([elicitation()], () => invalid('content.name is required'));
  const refused = await cli('answer');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('svc: content.name is required\nsvc:   name  Name');
  expect(refused.stderr).toContain('svc: svc elicitations answer eli_1 --set name=<value>');
});

test.each([
  ['--set', 'name'],
  ['--set', 'name=a', '--set', 'name=b'],
  ['--set', 'name=a', '--content', '{}'],
  ['--content', '[]'],
  ['--content', '{'],
])('%s %s %s %s is a usage error', async (...argv) => {
  await open([elicitation()]);
  expect((await cli('answer', 'eli_1', ...argv.filter(Boolean))).code).toBe(2);
  expect(answers).toEqual([]);
});

test('a URL takes no fields; without an id, exactly one must be pending', async () => {
  await open([elicitation(), link]);
  expect((await cli('answer', 'eli_2', '--set', 'a=b')).code).toBe(2);
  expect(await cli('decline')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      '2 elicitations are pending: pass the id of one\nsvc: eli_1  one  Where to?',
    ),
  });
  await server?.drain();
  await open([]);
  expect(await cli('show')).toMatchObject({
    code: 1,
    stderr: 'svc: no elicitation is pending\n',
  });
  expect(answers).toEqual([]);
});
