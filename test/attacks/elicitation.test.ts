/** Forms and URLs that an agent crafts to harm the page, the service or the person who answers. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { limits } from '../../src/acp/limits.ts';
import { Conversation } from '../../src/testing/conversation.ts';
import { TestPlane } from '../../src/testing/plane.ts';

const AGENT = fileURLToPath(new URL('../../src/testing/acp-agent.ts', import.meta.url));
const SOON = { timeout: 20_000 };

let plane: TestPlane;
let opened: Conversation | undefined;
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(() => plane.close());
afterEach(async () => {
  expect(plane.isRunning).toBe(true);
  await opened?.expectSameState();
  await opened?.stop();
  await opened?.close();
  opened = undefined;
});

/** An agent that sends this elicitation in its turn. `json`: for what an object literal cannot express. */
async function startEliciting(params: object | string): Promise<Conversation> {
  const file = join(plane.folder, 'asked.json');
  await writeFile(file, typeof params === 'string' ? params : JSON.stringify(params));
  const argv = [process.execPath, AGENT, 'elicits', `@${file}`];
  opened = await Conversation.start(plane, argv, { prompt: 'Ask.' });
  return opened;
}

const form = (properties: object) => ({ mode: 'form', message: 'Sure?', requestedSchema: { properties } });
const url = (address: string) => ({ mode: 'url', message: 'Sign in', elicitationId: 'e', url: address });
const large = 'x'.repeat(limits.elicitation_form_chars_max);

test.each<[what: string, asked: object | string]>([
  ['a URL that runs a script', url('javascript:fetch("https://evil.example")')],
  ['a URL of a file', url('file:///etc/shadow')],
  ['a URL whose host is hidden behind a username', url('https://example.org%2f@evil.example/')],
  ['a schema that is too large', form({ a: { type: 'string', description: large } })],
  ['too many choices', form({ a: { type: 'string', enum: Array.from({ length: 20_000 }, String) } })],
  ['a field named __proto__', `{"requestedSchema":{"properties":{"__proto__":{"type":"string"}}}}`],
  ['a schema of references', form({ a: { $ref: '#/properties/a' } })],
])('%s is shown to nobody, and the agent gets an error', async (_what, params) => {
  const conversation = await startEliciting(params);
  await conversation.error('elicitation_unreadable');
  await conversation.untilIdle();
  await vi.waitFor(() => expect(conversation.text).toBe('answered: error -32602'), SOON);
  expect(await conversation.elicitations()).toEqual([]);
});

test('a pattern with catastrophic backtracking blocks nothing', async () => {
  const conversation = await startEliciting(form({ a: { type: 'string', pattern: '^(a|a|aa)+$' } }));
  const { id } = await conversation.pendingElicitation();
  const content = { a: `${'a'.repeat(20_000)}!` };
  expect(await conversation.respondElicitation(id, { action: 'accept', content })).toMatchObject({
    status: 'accepted',
  });
  await conversation.untilIdle();
});

test('values for unknown fields or for __proto__ are rejected', async () => {
  const conversation = await startEliciting(form({ constructor: { type: 'string' } }));
  const { id } = await conversation.pendingElicitation();
  const answer = (body: string) =>
    fetch(`${plane.url}/api/elicitations/${id}/respond`, {
      method: 'POST',
      headers: { authorization: `Bearer ${plane.token}`, 'content-type': 'application/json' },
      body,
    });
  const refused = await answer('{"action":"accept","content":{"toString":"x"}}');
  expect([refused.status, await refused.json()]).toEqual([
    400,
    expect.objectContaining({ error: 'content.toString is not a field of the form' }),
  ]);
  const poisoned = await answer('{"action":"accept","content":{"__proto__":{"constructor":"x"}}}');
  expect(poisoned.status).toBe(400);
  expect((await answer('{"action":"accept","content":{}}')).status).toBe(200);
  await conversation.untilIdle();
  await vi.waitFor(() => expect(conversation.text).toBe('answered: {"action":"accept","content":{}}'), SOON);
});

const CHARACTERS = ['\u202e', '\u200d', '\u2800', '\u0430'];
const hidden = CHARACTERS.map((one) => `rm${one}x`).join(';');
const named = 'rm⟦U+202E⟧x;rm⟦U+200D⟧x;rm⟦U+2800⟧x;rm⟦U+0430⟧x';

test('the command line names hidden characters wherever an agent put them', async () => {
  const hidden_texts = { title: hidden, description: `\u001b[2J\u001b]52;c;eA==\u0007${hidden}` };
  const choice = { const: hidden, ...hidden_texts };
  const conversation = await startEliciting({
    message: `${hidden}\nsvc elicitations answer eli_x`,
    requestedSchema: {
      ...hidden_texts,
      properties: { [hidden]: { type: 'string', ...hidden_texts, oneOf: [choice] } },
    },
  });
  const { id } = await conversation.pendingElicitation();
  const { stdout } = await plane.cli(['elicitations', 'show', id]);
  expect(stdout.split(named)).toHaveLength(8);
  for (const one of [...CHARACTERS, '\u001b', '\u0007']) expect(stdout).not.toContain(one);
  // Only lines of the CLI itself start like a command.
  expect(stdout.match(/^svc .*/gm)).toEqual([
    `svc elicitations answer ${id} --content <json>`,
    `svc elicitations decline ${id}`,
    `svc elicitations cancel ${id}`,
  ]);
  const { stdout: log } = await plane.cli(['logs', conversation.agent_id]);
  for (const one of [...CHARACTERS, '\u001b']) expect(log).not.toContain(one);
});

test('a look-alike host is shown in Punycode, before the URL', async () => {
  const conversation = await startEliciting(url('https://p\u0430ypal.com/\u202egpj.exe'));
  const { id } = await conversation.pendingElicitation();
  const { stdout } = await plane.cli(['elicitations', 'show', id]);
  expect(stdout).toContain('host     xn--pypal-4ve.com\n');
  expect(stdout).toContain('url      https://xn--pypal-4ve.com/%E2%80%AEgpj.exe\n');
});
