/** A command in a permission review contains invisible characters, or letters that look like others. */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { browserTest, openBrowser, signIn } from '../../src/testing/browser.ts';
import { TestPlane } from '../../src/testing/plane.ts';

const AGENT = fileURLToPath(new URL('../../src/testing/acp-agent.ts', import.meta.url));

/** Invisible characters, and a Cyrillic letter. */
const CHARACTERS = [
  ...['\u200c', '\u200d', '\u034f', '\u2800', '\uffa0', '\u17b4', '\ufe0f', '\u00a0', '\u3000', '\u{e0100}'],
  ...['\u{1d173}', '\u0430'],
];
const command = CHARACTERS.map((one) => `rm${one}x`).join(';');
const named = CHARACTERS.map(
  (one) => `rm⟦U+${one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟧x`,
).join(';');

let plane: TestPlane;
let agent_id: string;
let review_id: string;

beforeAll(async () => {
  plane = await TestPlane.open();
  const question = {
    toolCall: {
      toolCallId: 't',
      title: command,
      kind: 'execute',
      rawInput: { command: `sudo ${command}` },
      content: [{ type: 'content', content: { type: 'text', text: `Why: ${command}` } }],
    },
    options: [{ optionId: 'yes', name: `Yes: ${command}`, kind: 'allow_once' }],
  };
  const argv = [process.execPath, AGENT, 'sends_updates', JSON.stringify([[question]])];
  ({ id: agent_id } = await plane.agent(argv, { protocol: 'acp', prompt: 'Go on.' }));
  const expectPending = async () => expect((await plane.get(agent_id)).pending_reviews).toBe(1);
  await vi.waitFor(expectPending, { timeout: 30_000 });
  const listed = await plane.client.call('listReviews', { query: { agent_id } });
  review_id = ('items' in listed ? listed.items : listed)[0]!.id;
});
afterAll(() => plane.close());

test('the command line names hidden characters in the title, the input, the text and the options', async () => {
  const { stdout } = await plane.cli(['reviews', 'show', review_id]);
  for (const text of [named, `sudo ${named}`, `Why: ${named}`, `Yes: ${named}`])
    expect(stdout).toContain(text);
  for (const one of CHARACTERS) expect(stdout).not.toContain(one);
});

browserTest(
  'the card in the web UI names hidden characters in the title, the input, the text and the options',
  async () => {
    const browser = await openBrowser();
    try {
      const { page } = await browser.open(plane, {});
      await signIn(page, plane);
      await page.goto(`${plane.url}/agents/${agent_id}`);
      const card = page.getByRole('article');
      await card.getByText(named, { exact: true }).first().waitFor();
      const shown = await card.innerText();
      for (const text of [`sudo ${named}`, `Why: ${named}`, `Yes: ${named}`]) expect(shown).toContain(text);
      for (const one of CHARACTERS) expect(shown).not.toContain(one);
    } finally {
      await browser.close();
    }
  },
);
