/** Approvals in real browsers: a review is shown to everybody who may answer it, and is answered once. */
import { fileURLToPath } from 'node:url';
import axe from 'axe-core';
import type { Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { Client } from '../src/client/client.ts';
import type { Agent } from '../src/features/agents/rules.ts';
import type { Review } from '../src/features/reviews/rules.ts';
import type { WaitingStep } from '../src/features/runs/rules/run.ts';
import {
  browserTest,
  clickUntil,
  longBrowserTest,
  pressComposing,
  sharedBrowser,
  signIn,
  tapUntil,
} from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

/** Generous, for slow machines. */
const SOON = { timeout: 30_000 };
const scripted = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
const PASSWORD = 'another correct horse';
let plane: TestPlane;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterEach(async () => {
  for (const { team_id, run_id } of (await plane.client.call('listWaitingSteps')) as never as WaitingStep[])
    await plane.client.call('cancelRun', { params: { team_id, run_id } });
  for (const agent of (await plane.client.call('listAgents')) as never as Agent[]) {
    await plane.client.call('deleteAgent', { params: { agent_id: agent.id }, query: { force: true } });
  }
});
afterAll(async () => {
  await plane.close();
});

const once = { optionId: 'once', name: 'Allow once', kind: 'allow_once' };
const always = { optionId: 'always', name: 'Always allow', kind: 'allow_always' };
const reject = { optionId: 'no', name: 'Reject', kind: 'reject_once' };

async function requestReview(
  title: string,
  kind = 'execute',
  options = [once, always, reject],
  name = `asks ${title}`,
): Promise<Review> {
  const toolCall = { toolCallId: title, title, kind };
  const argv = [process.execPath, scripted, 'sends_updates', JSON.stringify([[{ toolCall, options }]])];
  const agent = await plane.agent(argv, { name, protocol: 'acp', prompt: 'Go on' });
  await expect.poll(async () => (await plane.get(agent.id)).pending_reviews, SOON).toBe(1);
  const query = { agent_id: agent.id };
  const [review] = (await plane.client.call('listReviews', { query })) as never as [Review];
  return review;
}

/** Adds another root user; returns a token. */
async function addRoot(username: string): Promise<string> {
  await plane.client.call('createUser', { body: { username, password: PASSWORD, role: 'root' } });
  return (await plane.client.call('login', { body: { username, password: PASSWORD } })).token;
}

/** A run of a new team whose only step waits. Returns the parameters of commands on the step. */
async function askQuestion(team: string, reason: string) {
  const step = { step_key: 'title', member_id: 'dev' };
  const spec = { members: [{ member_id: 'dev', executor: 'human' }], steps: [step] };
  const { id: team_id } = await plane.client.call('createTeam', { body: { name: team, spec } as never });
  const { id: run_id } = await plane.client.call('createRun', { params: { team_id }, body: { input: {} } });
  const of_step = { params: { team_id, run_id, step_key: 'title' } };
  await plane.client.call('requireStepInput', { ...of_step, body: { reason } });
  return of_step;
}

/** The WCAG violations that axe finds. */
async function violations(page: Page): Promise<unknown[]> {
  await page.evaluate(axe.source);
  const runOnly = JSON.stringify(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']);
  const found = (await page.evaluate(`axe.run(document, { runOnly: ${runOnly} })`)) as {
    violations: { id: string; nodes: { html: string }[] }[];
  };
  return found.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
}

async function openApprovals(more = '', options: { token?: string; screen?: 'phone' } = {}): Promise<Page> {
  const { page } = await browser.open(plane, options.screen ? { screen: options.screen } : {});
  await signIn(page, plane, options.token ? { token: options.token } : {});
  await page.goto(`${plane.url}/approvals${more}`);
  return page;
}

const waiting = (page: Page) => page.getByRole('list', { name: 'Waiting' });
const card = (page: Page, title: string) => waiting(page).getByRole('article').filter({ hasText: title });
/** A card that has just appeared, moved or got the focus takes no answers for a moment: `src/web/waiting/focus.ts`, `ui/moved-rows.ts`. */
const untilRead = (page: Page) => page.waitForTimeout(450);
const rejectionMessage = (page: Page) =>
  page.getByRole('textbox', { name: 'Message, sent as the next prompt' });
/** Opens the field for the message of a rejection. */
async function rejectWithMessage(page: Page, title: string): Promise<Locator> {
  const message = rejectionMessage(page);
  const button = card(page, title).getByRole('button', { name: 'Reject with message' });
  await clickUntil(button, message);
  return message;
}
/**
 * Records the texts of elements from now on, because some are in view only for a moment: `CONFIRMATION_MS` in
 * `src/web/screens/approvals/full-screen.tsx`. Returns a function that waits until one of them has contained a text.
 */
async function recordTexts(page: Page, selector: string): Promise<(text: string) => Promise<void>> {
  const texts = await page.evaluateHandle<Set<string>>(`(() => {
    const texts = new Set();
    const record = () => {
      for (const { textContent } of document.querySelectorAll('${selector}')) texts.add(textContent);
    };
    new MutationObserver(record).observe(document.body, { subtree: true, childList: true, characterData: true });
    return texts;
  })()`);
  const read = () => texts.evaluate((all) => [...all]);
  return (text) => expect.poll(read, SOON).toContainEqual(expect.stringContaining(text));
}
const isAnswered = (review: Review) => async () => (await get(review)).status === 'answered';
const get = (review: Review) => plane.client.call('getReview', { params: { review_id: review.id } });

browserTest(
  'of two people who answer at the same time, one wins and the other sees who, without an error',
  async () => {
    const token = await addRoot('leo');
    const review = await requestReview('npm publish');
    const [ana, leo] = await Promise.all([openApprovals(), openApprovals('', { token })]);
    const buttons = [ana, leo].map((page) =>
      card(page, 'npm publish').getByRole('button', { name: 'Allow once' }),
    );
    for (const button of buttons) await button.waitFor();
    // Both answers are given before either is sent.
    const both_clicked = Promise.withResolvers<void>();
    let answers = 0;
    for (const page of [ana, leo]) {
      await page.route('**/api/permission-reviews/*/respond', async (route) => {
        if (++answers === 2) both_clicked.resolve();
        await both_clicked.promise;
        await route.continue();
      });
    }
    await Promise.all(buttons.map((button) => button.click()));
    await expect.poll(async () => (await get(review)).status, SOON).toBe('answered');
    const { answered_by } = await get(review);
    const [winner, other] = answered_by === 'ana' ? [ana, leo] : [leo, ana];
    await card(winner, `Allow once · ${answered_by} · waited`).waitFor();
    await card(other, `Answered by ${answered_by}: Allow once`).waitFor();
    for (const page of [ana, leo]) expect(await page.getByRole('alert').count()).toBe(0);
  },
);

browserTest('a link focuses its review, and keys move between reviews and answer them', async () => {
  const first = await requestReview('first thing');
  const second = await requestReview('second thing', 'edit');
  const page = await openApprovals(`?review=${second.id}`);
  const focused = () => page.evaluate('document.activeElement.dataset.review ?? null');
  await expect.poll(focused, SOON).toBe(second.id);
  await page.keyboard.press('k');
  await expect.poll(focused).toBe(first.id);
  await page.keyboard.press('j');
  await expect.poll(focused).toBe(second.id);
  await page.keyboard.press('3');
  await card(page, 'Reject · ana').waitFor();
  // The next open card has the focus, and `j` finds no settled one.
  await expect.poll(focused).toBe(first.id);
  await page.keyboard.press('j');
  expect(await focused()).toBe(first.id);
  expect((await get(second)).option_id).toBe('no');
  expect((await get(first)).status).toBe('pending');
});

longBrowserTest('after an answer, a digit does not answer the next card before it can be read', async () => {
  const reviews = [await requestReview('one thing'), await requestReview('next thing')];
  const page = await openApprovals();
  await card(page, 'next thing').waitFor();
  const focused = () => page.evaluate('document.activeElement.dataset.review ?? null');
  // Without a selected card, a digit does nothing.
  await page.keyboard.press('1');
  await page.keyboard.press('j');
  await expect.poll(focused).toBe(reviews[0]!.id);
  // The second press comes in the moment in which the next card gets the focus.
  await page.evaluate(`document.addEventListener('focusin', ({ target }) => {
    if (target.dataset.review === '${reviews[1]!.id}') {
      globalThis.pressed = true;
      target.dispatchEvent(new KeyboardEvent('keydown', { key: '1', bubbles: true }));
    }
  })`);
  await page.keyboard.press('1');
  await expect.poll(focused, SOON).toBe(reviews[1]!.id);
  expect(await page.evaluate('globalThis.pressed')).toBe(true);
  // Once the time is over, it answers.
  await untilRead(page);
  expect((await get(reviews[1]!)).status).toBe('pending');
  expect((await get(reviews[0]!)).option_id).toBe('once');
  await page.keyboard.press('2');
  await expect.poll(async () => (await get(reviews[1]!)).option_id, SOON).toBe('always');
  // The settled card keeps the focus: there is no other.
  await expect.poll(focused).toBe(reviews[1]!.id);
});

browserTest(
  'ten requests take two keys at first, and one key each after that',
  { timeout: 240_000 },
  async () => {
    const titles = Array.from({ length: 10 }, (_, n) => `change ${n}`);
    const reviews: Review[] = [];
    // Ten agents that start at the same time take too long on a slow machine.
    for (let at = 0; at < titles.length; at += 2)
      reviews.push(...(await Promise.all(titles.slice(at, at + 2).map((title) => requestReview(title)))));
    const page = await openApprovals();
    await expect.poll(() => page.locator('[data-waiting][data-open]').count(), SOON).toBe(10);
    await page.keyboard.press('j');
    for (let left = 9; left >= 0; left--) {
      await page.keyboard.press('1');
      await expect.poll(() => page.locator('[data-waiting][data-open]').count(), SOON).toBe(left);
      // A digit is ignored until the next card can be read.
      await untilRead(page);
    }
    for (const review of reviews) expect((await get(review)).option_id).toBe('once');
  },
);

browserTest('a rejection with a message sends both, and keeps the message if it comes too late', async () => {
  const [sent, late] = [await requestReview('npm publish'), await requestReview('npm version')];
  const page = await openApprovals(`?review=${sent.id}`);
  const message = rejectionMessage(page);
  await card(page, 'npm publish').getByRole('button', { name: 'Allow once' }).waitFor();
  await expect.poll(() => page.evaluate('document.activeElement.dataset.review'), SOON).toBe(sent.id);
  await page.keyboard.press('r');
  await message.fill('Only a dry run, please');
  await pressComposing(page, 'Escape');
  expect(await message.and(page.locator(':focus')).count()).toBe(1);
  await page.keyboard.press('Control+Enter');
  await card(page, 'Reject · ana').waitFor();
  expect(await get(sent)).toMatchObject({ status: 'answered', option_id: 'no' });
  const prompts = async ({ agent_id }: Review) =>
    JSON.stringify(await plane.client.call('listPrompts', { params: { agent_id } }));
  expect(await prompts(sent)).toContain('Only a dry run, please');

  await (await rejectWithMessage(page, 'npm version')).fill('Keep the version');
  await page.route('**/respond', async (route) => {
    const body = { option_id: 'once' };
    await plane.client.call('respondReview', { params: { review_id: late.id }, body });
    await route.continue();
  });
  await page.getByRole('button', { name: 'Reject and send' }).click();
  await card(page, 'Your message was not sent').getByText('Keep the version').waitFor();
  expect(await prompts(late)).not.toContain('Keep the version');
  await clickUntil(page.getByRole('button', { name: 'Send it as a prompt' }), async () =>
    (await prompts(late)).includes('Keep the version'),
  );
  await page.unroute('**/respond');
});

browserTest('a rejection whose response is lost does not offer to send its message again', async () => {
  const review = await requestReview('npm publish');
  const page = await openApprovals(`?review=${review.id}`);
  await (await rejectWithMessage(page, 'npm publish')).fill('Only a dry run, please');
  await page.route('**/respond', async (route) => {
    await route.fetch();
    await route.abort();
  });
  const lost = page.waitForEvent('requestfailed');
  await page.getByRole('button', { name: 'Reject and send' }).click();
  await lost;
  await card(page, 'Reject · ana').waitFor();
  const drafts = () => page.evaluate('Object.keys(localStorage).filter((key) => key.includes("reject"))');
  await expect.poll(drafts, SOON).toEqual([]);
  expect(await page.getByText('Your message was not sent').count()).toBe(0);
  await page.unroute('**/respond');
});

browserTest('a message is kept if the user goes back and rejects without it', async () => {
  const review = await requestReview('npm publish');
  const page = await openApprovals(`?review=${review.id}`);
  await (await rejectWithMessage(page, 'npm publish')).fill('Too risky');
  await page.getByRole('button', { name: 'Back' }).click();
  const reject = card(page, 'npm publish').getByRole('button', { name: 'Reject', exact: true });
  await clickUntil(reject, card(page, 'Reject · ana').getByText('Too risky'));
  await page.goto(`${plane.url}/agents/${review.agent_id}/conversation`);
  await page.getByText('Your message was not sent:').waitFor();
  await page.getByText('Too risky').waitFor();
});

browserTest(
  'what is typed into a field that somebody else’s answer removes does not act on the page',
  async () => {
    const review = await requestReview('npm publish');
    const page = await openApprovals(`?review=${review.id}`);
    const message = await rejectWithMessage(page, 'npm publish');
    await message.pressSequentially('cancel');
    const params = { review_id: review.id };
    const answer = plane.client.call('respondReview', { params, body: { option_id: 'once' } });
    // In the page, because nothing must interrupt the typing. Outside a field, `c` is a shortcut.
    await page.evaluate(
      `new Promise((resolve) => {
        const field = document.activeElement;
        let more = 20;
        const typing = setInterval(() => {
          const press = new KeyboardEvent('keydown', { key: 'c', bubbles: true, cancelable: true });
          document.activeElement.dispatchEvent(press);
          // On a slow machine, the field may be gone already.
          if ((field.matches('textarea') && field.isConnected) || --more > 0) return;
          clearInterval(typing);
          resolve();
        }, 20);
      })`,
    );
    await answer;
    await card(page, 'Your message was not sent').getByText('cancel').waitFor();
    expect(new URL(page.url()).pathname).toBe('/approvals');
  },
);

browserTest(
  'a conversation keeps the message of a rejection that somebody else has forestalled',
  async () => {
    const client = new Client({ url: plane.url, token: await addRoot('kim') });
    const review = await requestReview('npm publish');
    const { page } = await browser.open(plane);
    await signIn(page, plane);
    await page.goto(`${plane.url}/agents/${review.agent_id}/conversation`);
    await page.getByRole('button', { name: 'Reject with message' }).click();
    await page.getByRole('textbox', { name: 'Message, sent as the next prompt' }).fill('Too risky');
    await client.call('respondReview', { params: { review_id: review.id }, body: { option_id: 'once' } });
    await page.getByText('Your message was not sent:').waitFor();
    await page.getByText('Too risky').waitFor();
  },
);

longBrowserTest('while the form for a message is open, digits do not answer, and Esc closes it', async () => {
  const review = await requestReview('npm publish');
  const page = await openApprovals(`?review=${review.id}`);
  const focused = () => page.evaluate('document.activeElement.dataset.review ?? null');
  await expect.poll(focused, SOON).toBe(review.id);
  const open = card(page, 'npm publish');
  await open.getByText('1–3 answer').waitFor();
  await page.keyboard.press('r');
  const message = rejectionMessage(page);
  await message.fill('no');
  await open.getByText('Ctrl ⏎ sends · Esc goes back to the options').waitFor();
  expect(await open.getByText('1–3 answer').count()).toBe(0);
  const answers: string[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/respond')) answers.push(request.url());
  });
  // The focus is on the card, and the form is still open.
  await open.evaluate((element) => element.focus());
  await page.keyboard.press('1');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Escape');
  await message.waitFor({ state: 'detached' });
  expect(await focused()).toBe(review.id);
  expect(answers).toEqual([]);
  await page.keyboard.press('r');
  expect(await message.inputValue()).toBe('no');
  await page.keyboard.press('Escape');
  await message.waitFor({ state: 'detached' });
  // The options are in view again, and so are their keys.
  await open.getByText('1–3 answer').waitFor();
  await page.keyboard.press('3');
  await card(page, 'Reject · ana').waitFor();
  expect((await get(review)).option_id).toBe('no');
});

longBrowserTest('an answered card shrinks, unless the user prefers reduced motion', async () => {
  const { page } = await browser.open(plane, { separate: true });
  await signIn(page, plane);
  /** The durations of the animations of cards, in each frame while one is answered. */
  const answer = async (title: string) => {
    const { id } = await requestReview(title);
    await page.goto(`${plane.url}/approvals?review=${id}`);
    const open = card(page, title);
    await open.getByRole('button', { name: 'Allow once' }).waitFor();
    await page.evaluate(`globalThis.seen = [];
      // Not those of style sheets.
      globalThis.ofCard = (animation) =>
        animation.constructor === Animation && animation.effect.target?.matches('[data-waiting]');
      (function watch() {
        for (const animation of document.getAnimations())
          if (ofCard(animation)) seen.push(animation.effect.getTiming().duration);
        requestAnimationFrame(watch);
      })()`);
    await clickUntil(
      open.getByRole('button', { name: 'Allow once' }),
      card(page, 'Allow once · ana').first(),
    );
    await expect.poll(() => page.evaluate('document.getAnimations().some(ofCard)')).toBe(false);
    return [...new Set((await page.evaluate('seen')) as number[])];
  };
  expect(await answer('npm publish')).toEqual([140]);
  await page.emulateMedia({ reducedMotion: 'reduce' });
  expect(await answer('npm version')).toEqual([]);
});

browserTest(
  'all kinds of waiting are in one queue, the oldest first, and can be answered there',
  async () => {
    const review = await requestReview('npm publish');
    const { params } = await askQuestion('writers', 'Which title?');
    const page = await openApprovals();
    const names = () =>
      waiting(page)
        .getByRole('article')
        .evaluateAll((all) => all.map((one) => one.querySelector('header')?.textContent));
    await card(page, 'Which title?').waitFor();
    // These arrive while the page is open.
    const form = [process.execPath, scripted, 'elicits'];
    const eliciting = await plane.agent(form, { name: 'deploys', protocol: 'acp', prompt: 'Go on' });
    await card(page, 'How shall I deploy it?').waitFor();
    const argv = [process.execPath, scripted, 'auth'];
    const locked = await plane.agent(argv, { name: 'locked', protocol: 'acp', prompt: 'Hello?' });
    await card(page, 'Sign in to use locked').waitFor();
    expect((await names()).map((name) => /Permission|Question|Form|Sign in/.exec(name ?? '')?.[0])).toEqual([
      'Permission',
      'Question',
      'Form',
      'Sign in',
    ]);
    await expect.poll(() => page.title(), SOON).toBe('(4) Approvals · svc');
    await page.getByRole('navigation', { name: 'Main' }).getByText('4 waiting').waitFor();
    await page.getByText('4 requests need you').waitFor({ state: 'attached' });
    expect(await violations(page)).toEqual([]);

    await page.goto(`${plane.url}/agents?show=needs_you`);
    await page.getByRole('link', { name: 'Needs you 3' }).waitFor();
    for (const [agent, button] of [
      [review.agent_id, 'Review'],
      [eliciting.id, 'Answer'],
      [locked.id, 'Sign in'],
    ] as const) {
      const row = page.locator(`[data-row="${agent}"]`);
      await row.getByText('Needs you').waitFor();
      await row.getByText(/^\s?\(running, needs you\)$/).waitFor({ state: 'attached' });
      await row.getByRole('link', { name: button }).waitFor();
    }
    await page.locator(`[data-row="${locked.id}"]`).getByRole('link', { name: 'Sign in' }).click();
    const sign_in = card(page, 'Sign in to use locked');
    await expect.poll(() => page.evaluate('document.activeElement.dataset.waiting ?? null')).toBe(locked.id);
    await clickUntil(sign_in.getByRole('button', { name: 'Sign in' }), card(page, 'Signed in'));

    const link = `${plane.url}/approvals?question=${encodeURIComponent(`${params.run_id}/title`)}`;
    await page.goto(link);
    await expect
      .poll(() => page.evaluate('document.activeElement.dataset.waiting ?? null'), SOON)
      .toBe(`${params.run_id}/title`);
    await page.keyboard.press('Enter');
    await page.keyboard.type('Rain 1');
    await page.keyboard.press('Control+Enter');
    await card(page, 'Answered').waitFor();
    const [answered] = await plane.client.call('listSteps', { params });
    expect(answered).toMatchObject({ status: 'running', waiting_since: null });
    // The focus is on the next open card; typing on would not have answered anything.
    await expect
      .poll(() => page.evaluate('document.activeElement.closest("[data-open]")?.dataset.elicitation ?? null'))
      .not.toBe(null);
    expect((await get(review)).status).toBe('pending');
    await expect.poll(() => page.title(), SOON).toBe('(2) Approvals · svc');
    await page.goto(link);
    await page.getByText('The request in this link no longer waits for an answer.').waitFor();
  },
);

longBrowserTest('a question that somebody else answers says who answered what', async () => {
  const client = new Client({ url: plane.url, token: await addRoot('mia') });
  const ask = await askQuestion('poets', 'Which title?');
  const page = await openApprovals();
  await card(page, 'Which title?').waitFor();
  await client.call('resumeStep', { ...ask, body: { input: 'Rain' } });
  await card(page, 'Which title?').getByText('Answered by mia: Rain').waitFor();
  await plane.client.call('requireStepInput', { ...ask, body: { reason: 'Which color?' } });
  await card(page, 'Which color?').getByLabel('Answer').waitFor();
  await client.call('completeStep', { ...ask, body: {} });
  await card(page, 'Which color?').getByText('Completed by mia').waitFor();
});

longBrowserTest(
  'a run that waits without a question can be resumed here, and says how its wait ended',
  async () => {
    const agent = { command: 'sleep 600', workdir: plane.work };
    const spec = { members: [{ member_id: 'lead', agent }], leader_member_id: 'lead' };
    const { id: team_id } = await plane.client.call('createTeam', { body: { name: 'led', spec } as never });
    const { id: run_id } = await plane.client.call('createRun', { params: { team_id }, body: { input: {} } });
    const params = { team_id, run_id };
    /** Stops the leader, so that the outcome of its round is unknown. */
    const interrupt = async () => {
      const leader = async () => (await plane.client.call('listRunMembers', { params: { run_id } })).leader;
      await expect.poll(async () => (await leader()).status, SOON).toBe('running');
      const agent_id = (await leader()).agent_id!;
      await plane.client.call('stopAgent', { params: { agent_id }, body: { grace_seconds: 0 } });
    };
    const page = await openApprovals();
    await page.getByText('No approvals are waiting.').waitFor();
    await interrupt();
    const run = card(page, 'led #1');
    await run.getByText(/outcome unknown|its agent was stopped/).waitFor();
    await page.getByRole('navigation', { name: 'Main' }).getByText('1 waiting').waitFor();
    expect(await violations(page)).toEqual([]);
    await clickUntil(run.getByRole('button', { name: 'Resume run' }), run.getByText('Resumed'));
    await interrupt();
    await run.getByRole('button', { name: 'Resume run' }).waitFor();
    await plane.client.call('cancelRun', { params });
    await run.getByText('The run was cancelled').first().waitFor();
    await page.goto(`${plane.url}/approvals?run=${run_id}`);
    await page.getByText('The request in this link no longer waits for an answer.').waitFor();
  },
);

browserTest(
  'a review survives a reload and a restart of the plane, and is closed when its agent stops',
  async () => {
    const review = await requestReview('rm -r build');
    const page = await openApprovals();
    await card(page, 'rm -r build').waitFor();
    await page.goto(`${plane.url}/approvals?kind=sign-in`);
    await page.getByText('No approvals match this filter.').waitFor();
    await page.goto(`${plane.url}/approvals?review=rev_deleted`);
    await page.getByText('The request in this link no longer waits for an answer.').waitFor();
    await page.goto(`${plane.url}/approvals`);
    await card(page, 'rm -r build').waitFor();
    await plane.kill();
    await plane.start();
    await page.reload();
    const open = card(page, 'rm -r build');
    await open.getByRole('button', { name: 'Allow once' }).waitFor();
    await plane.client.call('stopAgent', {
      params: { agent_id: review.agent_id },
      body: { grace_seconds: 0 },
    });
    await card(page, 'No longer needed').waitFor();
    await page.getByText('No approvals are waiting.').waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Recent decisions' }).waitFor();
    await page.getByRole('article').filter({ hasText: 'No longer needed' }).first().waitFor();
  },
);

longBrowserTest('on a phone, the button for a new agent covers no link to a review', async () => {
  await requestReview('npm test');
  const { page } = await browser.open(plane, { screen: 'phone' });
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents`);
  const review = page.getByRole('row').getByRole('link', { name: /^Review/ });
  await review.first().waitFor();
  const add = (await page.getByRole('link', { name: 'New agent' }).boundingBox())!;
  const boxes = await review.evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
  // Rows can be scrolled to any height.
  for (const { left } of boxes) expect(left).toBeGreaterThan(add.x + add.width);
  // At the end of the list, nothing is below it.
  const list = page.locator('#main > .scroll-y');
  await list.evaluate((box) => box.scrollTo(0, box.scrollHeight));
  const bottoms = await list
    .locator('[data-row], aside')
    .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().bottom));
  expect(Math.max(...bottoms)).toBeLessThanOrEqual(add.y);
});

browserTest('on a phone, a request fills the screen, and the next one follows its answer', async () => {
  const first = await requestReview('first thing');
  const second = await requestReview('second thing');
  const third = await requestReview('third thing');
  const page = await openApprovals('', { screen: 'phone' });
  await waiting(page)
    .getByRole('link', { name: /second thing/ })
    .tap();
  const request = page.getByRole('article');
  await request.getByText('second thing').waitFor();
  expect(new URL(page.url()).search).toBe(`?review=${second.id}`);
  await page.getByText('2 left').waitFor();
  expect(await page.getByRole('navigation', { name: 'Main' }).count()).toBe(0);
  expect(await violations(page)).toEqual([]);
  // The tap that opened it may be the first of a double tap.
  await page.evaluate(`document.addEventListener('focusin', ({ target }) => {
    if (target.dataset.review) target.querySelector('button').click();
  })`);
  const [untilCard, untilStatus] = [
    await recordTexts(page, 'article'),
    await recordTexts(page, '[role=status]'),
  ];
  const allow = request.filter({ hasText: 'second thing' }).getByRole('button', { name: 'Allow once' });
  await tapUntil(allow, isAnswered(second));
  await untilCard('Allow once · ana');
  await untilStatus('2 left');

  // The third slides in, and the click that hits it at once does nothing.
  await request.getByText('third thing').waitFor();
  expect(new URL(page.url()).search).toBe(`?review=${third.id}`);
  await untilRead(page);
  expect((await get(third)).status).toBe('pending');
  // An answer from elsewhere stays on the screen.
  const body = { option_id: 'no' };
  await plane.client.call('respondReview', { params: { review_id: third.id }, body });
  await request.getByText('Reject · ana').waitFor();
  await page.getByRole('link', { name: 'Next request' }).tap();
  await request.getByText('first thing').waitFor();
  await tapUntil(request.getByRole('button', { name: 'Reject', exact: true }), isAnswered(first));
  await page.getByRole('status').getByText('Nothing else waits for you').waitFor();
  expect((await get(first)).option_id).toBe('no');
  await page.getByRole('link', { name: 'Done, back to asks first thing' }).waitFor();
  // Each answer replaced the request in the history.
  await page.goBack();
  await page.waitForURL(`${plane.url}/approvals`);
  await page.getByRole('heading', { name: 'Recent decisions' }).waitFor();
});

longBrowserTest('on a phone, questions, forms and sign-ins fill the screen too', async () => {
  const { params } = await askQuestion('authors', 'Which title?');
  const argv = [process.execPath, scripted, 'auth'];
  const locked = await plane.agent(argv, { name: 'locked', protocol: 'acp', prompt: 'Hello?' });
  await expect.poll(async () => (await plane.get(locked.id)).needs_you, SOON).toBe('sign_in');
  const form = [process.execPath, scripted, 'elicits'];
  const eliciting = await plane.agent(form, { name: 'deploys', protocol: 'acp', prompt: 'Go on' });
  await expect.poll(async () => (await plane.get(eliciting.id)).pending_elicitations, SOON).toBe(1);

  const question = encodeURIComponent(`${params.run_id}/title`);
  const page = await openApprovals(`?question=${question}`, { screen: 'phone' });
  const request = page.getByRole('article');
  await request.getByText('Which title?').waitFor();
  await request.getByLabel('Answer').fill('Rain');
  await expectInView(page, 'Send answer');
  const untilCard = await recordTexts(page, 'article');
  const signing_in = request.getByText('Sign in to use locked');
  await tapUntil(request.getByRole('button', { name: 'Send answer' }), signing_in);
  await untilCard('Answered');
  await expectInView(page, 'Sign in');
  const deploying = request.getByText('How shall I deploy it?');
  await tapUntil(request.getByRole('button', { name: 'Sign in' }), deploying);
  await expectInView(page, 'Send');
  const done = page.getByRole('link', { name: 'Done, back to deploys' });
  await tapUntil(request.getByRole('button', { name: 'Decline' }), done);
});

longBrowserTest('on a phone, a request on the page of a run opens on the whole screen', async () => {
  const { params } = await askQuestion('painters', 'Which color?');
  const { team_id, run_id } = params;
  const page = await openApprovals('', { screen: 'phone' });
  await page.goto(`${plane.url}/teams/${team_id}/runs/${run_id}`);
  const pending = page.getByRole('region', { name: 'Pending requests' });
  await pending.getByText('Which color?').waitFor();
  expect(await pending.getByRole('textbox').count()).toBe(0);
  await pending.getByRole('link', { name: 'Answer' }).tap();
  await page.waitForURL(`${plane.url}/approvals?question=**`);
  const request = page.getByRole('article');
  await request.getByLabel('Answer').fill('Blue');
  await expectInView(page, 'Send answer');
  const done = page.getByRole('link', { name: /^Done, back to/ });
  await tapUntil(request.getByRole('button', { name: 'Send answer' }), done);
  await done.tap();
  await page.waitForURL(`${plane.url}/teams/${team_id}/runs/${run_id}`);
});

/** Fails unless the whole button is on the screen and 48 px high. */
async function expectInView(page: Page, name: string): Promise<void> {
  const box = (await page.getByRole('article').getByRole('button', { name, exact: true }).boundingBox())!;
  expect(box.height).toBeGreaterThanOrEqual(48);
  expect(box.y + box.height).toBeLessThanOrEqual(page.viewportSize()!.height);
}

browserTest(
  'the caption of an option that lasts is beside the buttons, and below them on a phone',
  async () => {
    const { id, agent_id } = await requestReview('npm test');
    const full = 'also applies to later requests; the agent decides which';
    const page = await openApprovals(`?review=${id}`);
    const card = page.getByRole('article');
    const button = card.getByRole('button', { name: 'Always allow' });
    for (const width of [1280, 1100]) {
      await page.setViewportSize({ width, height: 800 });
      await expectSameRow(button, card.getByText('also next time'));
    }
    // Screen readers get all of it.
    expect(await button.evaluate((one) => one.ariaDescribedByElements![0]!.textContent)).toBe(full);
    // Beside the side panel of a conversation, there is no room for it.
    await page.goto(`${plane.url}/agents/${agent_id}`);
    await button.waitFor();
    expect(await isInView(card.getByText('also next time'))).toBe(false);
    const last = await card.getByRole('button', { name: 'Reject', exact: true }).boundingBox();
    const below = await card.getByText(/^Press n/).boundingBox();
    expect(below!.y - last!.y - last!.height).toBeLessThan(30);
    await page.setViewportSize({ width: 1280, height: 800 });
    await expectSameRow(button, card.getByText('also next time'));
    expect(await isInView(card.getByText('also next time'))).toBe(true);
    const phone = await openApprovals(`?review=${id}`, { screen: 'phone' });
    await phone.getByRole('article').getByText(full).waitFor();
  },
);

/** Whether the pointer can reach it. */
const isInView = (element: Locator) =>
  element.evaluate((one) => {
    const { x, y, width, height } = one.getBoundingClientRect();
    return one.ownerDocument.elementFromPoint(x + width / 2, y + height / 2) === one;
  });

async function expectSameRow(...elements: Locator[]): Promise<void> {
  const boxes = await Promise.all(elements.map((one) => one.boundingBox()));
  const [first, second] = boxes.map((box) => box!.y + box!.height / 2);
  expect(Math.abs(first! - second!)).toBeLessThan(2);
}

longBrowserTest('a review can be read while offline, with disabled buttons and the reason', async () => {
  const { id } = await requestReview('npm test');
  const page = await openApprovals(`?review=${id}`, { screen: 'phone' });
  const button = page.getByRole('article').getByRole('button', { name: 'Allow once' });
  await button.waitFor();
  // What counts is whether the service answers.
  const answered = page.waitForResponse('**/healthz');
  await page.evaluate(`Object.defineProperty(navigator, 'onLine', { value: false, configurable: true });
    dispatchEvent(new Event('offline')); delete navigator.onLine`);
  await answered;
  expect(await button.isEnabled()).toBe(true);
  await page.context().setOffline(true);
  await page.getByText('You are offline. Answer when you are back online.').waitFor();
  expect(await button.isDisabled()).toBe(true);
  await page.context().setOffline(false);
  await expect.poll(() => button.isEnabled(), SOON).toBe(true);
});

browserTest('the checkboxes of requests with the same title name their agents', async () => {
  for (const name of ['painter', 'mower']) await requestReview('npm test', 'execute', [once], name);
  const page = await openApprovals();
  // In the queue, and without room for it, in the cards.
  for (const width of [1280, 1000]) {
    await page.setViewportSize({ width, height: 800 });
    for (const name of ['painter', 'mower'])
      await page.getByRole('checkbox', { name: `Select ${name}: npm test`, exact: true }).waitFor();
    expect(await page.getByRole('checkbox').count()).toBe(2);
  }
});

longBrowserTest(
  'several reviews can be answered together, but only with one-time options that all of them have',
  async () => {
    const reviews = [
      await requestReview('one'),
      await requestReview('two', 'edit'),
      await requestReview('three'),
    ];
    const page = await openApprovals();
    for (const title of ['one', 'two'])
      await page.getByRole('checkbox', { name: `Select asks ${title}: ${title}` }).check();
    const many = page.getByRole('region', { name: 'Answer the selected requests' });
    const names = await many.locator('bdi').evaluateAll((all) => all.map((one) => one.textContent));
    expect(names).toEqual(['Allow once', 'Reject']);
    await many.getByRole('button', { name: 'Allow once' }).click();
    await many.waitFor({ state: 'detached' });
    const statuses = await Promise.all(reviews.map(async (review) => (await get(review)).option_id));
    expect(statuses).toEqual(['once', 'once', null]);
  },
);

longBrowserTest('filters are part of the URL, and cancelling the turn cancels its review', async () => {
  const edit = await requestReview('an edit', 'edit');
  await requestReview('a command');
  const page = await openApprovals('?kind=edit');
  await card(page, 'an edit').waitFor();
  expect(await waiting(page).getByRole('article').count()).toBe(1);
  const cancel = card(page, 'an edit').getByRole('button', { name: 'Cancel turn' });
  await clickUntil(cancel, card(page, 'Turn cancelled · ana'));
  expect(await get(edit)).toMatchObject({ status: 'cancelled', answered_by: 'ana' });
  await page.getByLabel('Filter by kind').selectOption('');
  await card(page, 'a command').waitFor();
  expect(new URL(page.url()).search).toBe('');
});

longBrowserTest(
  'agents that act without asking are marked on Approvals and on their page, and so are those that ask',
  async () => {
    await requestReview('a command');
    const argv = [process.execPath, scripted, 'acts_alone'];
    const { id } = await plane.agent(argv, { name: 'alone', protocol: 'acp', prompt: 'Go on' });
    await expect.poll(async () => (await plane.get(id)).asks, SOON).toBe('acts');
    const page = await openApprovals();
    await card(page, 'a command').getByText('asks before acting').waitFor();
    await page.getByText('alone acts on its own: its actions do not wait for approval.').waitFor();
    await page.getByRole('main').getByRole('link', { name: 'alone' }).click();
    await page.getByRole('heading', { name: 'alone' }).getByText('acts on its own').waitFor();
  },
);

longBrowserTest(
  'the row of an agent that waits has a menu besides its answer, and the sidebar shows the wait',
  async () => {
    const { agent_id } = await requestReview('Write notes');
    const { name } = await plane.get(agent_id);
    const { page, errors } = await browser.open(plane);
    await signIn(page, plane);
    await page.goto(`${plane.url}/agents`);
    const row = page.getByRole('row', { name });
    await row.getByRole('link', { name: 'Review' }).waitFor(SOON);
    const time = row.locator('time');
    await time.hover();
    expect(await time.getAttribute('title')).toMatch(/\d:\d\d.* · waiting for \d/);
    const sidebar = page.getByRole('navigation', { name: 'Main' });
    const since = await sidebar.getByRole('link', { name }).locator('time').getAttribute('datetime');
    expect(since).toBe(await time.getAttribute('datetime'));

    // By keyboard; the focus returns to the button.
    const more = row.getByRole('button', { name: `More actions for ${name}` });
    await more.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('menuitem', { name: 'Restart' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('menu').waitFor({ state: 'detached' });
    await row.locator('button[aria-label^="More actions"]:focus').waitFor();
    await more.click();
    await page.getByRole('menuitem', { name: 'Stop' }).click();
    await expect.poll(async () => (await plane.get(agent_id)).status, SOON).toBe('cancelled');
    await more.click();
    expect(await page.getByRole('menuitem', { name: 'Stop' }).count()).toBe(0);
    await page.getByRole('menuitem', { name: 'Output' }).click();
    await page.waitForURL(`**/agents/${agent_id}/output`);
    expect(errors).toEqual([]);
  },
);

browserTest('the collapsed sidebar has the mark, and its icons in one line', async () => {
  const { page } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents`);
  await page.getByRole('button', { name: 'Collapse sidebar' }).click();
  await page.getByRole('button', { name: 'Expand sidebar' }).waitFor();
  const sidebar = page.getByRole('navigation', { name: 'Main' });
  expect(await sidebar.locator('[data-mark]').isVisible()).toBe(true);
  const x = async (name: string) =>
    (await sidebar.getByRole('link', { name }).locator('svg').boundingBox())?.x;
  expect(await x('Settings')).toBe(await x('Agents'));
});
