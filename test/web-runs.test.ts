/** Runs in a browser: the list of the runs of all teams, and commands that come too late. */
import type { Page, Route } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { clientLimits } from '../src/base/limits.ts';
import { browserTest, longBrowserTest, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(async () => {
  await plane.close();
});

browserTest(
  'the runs of all teams are read with one request, and a new run appears with its title',
  async () => {
    const { page, errors } = await browser.open(plane);
    await signIn(page, plane);
    const start = (team_id: string, title: string) =>
      plane.client.call('createRun', { params: { team_id }, body: { input: { title } } });
    const led = { leader_member_id: 'ann', members: [{ member_id: 'ann' }] };
    const teams = await Promise.all(
      ['list-a', 'list-b', 'list-c'].map((name) =>
        plane.client.call('createTeam', { body: { name, spec: led } as never }),
      ),
    );
    for (const { id, name } of teams) await start(id, `Work of ${name}`);
    const read: string[] = [];
    page.on('request', (request) => {
      const { pathname } = new URL(request.url());
      if (/^\/api\/teams\/(\w+\/)?runs$/.test(pathname)) read.push(pathname);
    });
    await page.goto(`${plane.url}/runs`);
    const row = (title: string) => page.getByRole('row').filter({ hasText: title });
    for (const { name } of teams)
      await row(`Work of ${name}`)
        .getByRole('link', { name: `${name} · Run 1` })
        .waitFor();
    const { id: run_id } = await start(teams[1]!.id, 'Later work');
    await row('Later work').getByRole('link', { name: 'list-b · Run 2' }).waitFor();
    await plane.client.call('failRun', {
      params: { team_id: teams[1]!.id, run_id },
      body: { error_text: 'no paper' },
    });
    await row('Later work').getByText('no paper').waitFor();
    await plane.client.call('restartRun', { params: { team_id: teams[1]!.id, run_id } });
    await row('Later work').getByText('attempt 2', { exact: true }).waitFor();

    const { height } = page.viewportSize()!;
    await page.setViewportSize({ width: 768, height });
    const cells = page.getByRole('columnheader');
    expect(await cells.evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth))).toEqual(
      [],
    );
    // The column also has the errors of runs.
    expect((await cells.filter({ hasText: 'Input and message' }).boundingBox())!.width).toBeGreaterThan(100);
    await page.setViewportSize({ width: 1280, height });

    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill('later work');
    await page.getByRole('option', { name: /^list-b · run 2/ }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Teams' }).first().click();
    const last = page
      .getByRole('row')
      .filter({ has: page.getByRole('link', { name: 'list-b', exact: true }) });
    await last.getByRole('link', { name: /^Run 2/ }).waitFor();
    expect([...new Set(read)]).toEqual(['/api/teams/runs']);
    expect(errors).toEqual([]);
  },
);

longBrowserTest('the filter for runs that need the user finds those on older pages', async () => {
  const createTeam = async (name: string, step_keys: string[]) => {
    const steps = step_keys.map((step_key) => ({ step_key, member_id: 'dev' }));
    const spec = { members: [{ member_id: 'dev', executor: 'human' }], steps };
    return (await plane.client.call('createTeam', { body: { name, spec } as never })).id;
  };
  const start = async (team_id: string, title: string) =>
    (await plane.client.call('createRun', { params: { team_id }, body: { input: { title } } })).id;
  const ask = (team_id: string, run_id: string) =>
    plane.client.call('requireStepInput', {
      params: { team_id, run_id, step_key: 'title' },
      body: { reason: 'Which title?' },
    });
  const team_id = await createTeam('old', ['title']);
  await ask(team_id, await start(team_id, 'Waits for long'));
  // Its other step is ready, so the run itself does not need input.
  const running_id = await createTeam('older', ['title', 'text']);
  await ask(running_id, await start(running_id, 'Waits and runs'));
  for (let n = 1; n <= clientLimits.page_items_max; n += 20)
    await Promise.all(Array.from({ length: 20 }, (_, at) => start(team_id, `Newer ${n + at}`)));

  const { page, errors } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(`${plane.url}/runs`);
  const row = (title: string | RegExp) => page.getByRole('row').filter({ hasText: title });
  await row('Newer 1').first().waitFor();
  expect(await row('Waits for long').count()).toBe(0);
  await page.getByRole('button', { name: 'Needs you 2', exact: true }).click();
  await row('Waits for long').waitFor();
  await row('Waits and runs').waitFor();
  expect(await row(/Newer/).count()).toBe(0);
  expect(await page.getByRole('button', { name: 'Show older runs' }).count()).toBe(0);
  await page.getByRole('button', { name: /^Input required/ }).click();
  await row('Waits for long').waitFor();
  expect(errors).toEqual([]);
});

longBrowserTest(
  'a team lists its older runs, also after newer ones were deleted, and their changes',
  async () => {
    const spec = { members: [{ member_id: 'dev', agent: null }], leader_member_id: 'dev' };
    const { id: team_id } = await plane.client.call('createTeam', {
      body: { name: 'busy', spec } as never,
    });
    const ids: string[] = [];
    for (let n = 1; n <= 102; n++) {
      const run = await plane.client.call('createRun', { params: { team_id }, body: {} });
      ids.push(run.id);
    }
    const end = (at: number) => {
      const params = { team_id, run_id: ids[at]! };
      return plane.client.call('failRun', { params, body: { error_text: `End of ${at}` } });
    };
    const { page, errors } = await browser.open(plane);
    await signIn(page, plane);
    await page.goto(`${plane.url}/teams/${team_id}`);
    const rows = page.getByRole('region', { name: 'Runs' }).locator('tr[data-row]');
    const row = (number: number) =>
      rows.filter({ has: page.getByRole('link', { name: `Run ${number}`, exact: true }) });
    const older = page.getByRole('button', { name: 'Show older runs' });
    await older.waitFor();
    await end(101);
    await plane.client.call('deleteRun', { params: { team_id, run_id: ids[101]! } });
    await row(102).waitFor({ state: 'detached' });
    await older.click();
    await row(1).waitFor();
    expect([await rows.count(), await older.count()]).toEqual([101, 0]);
    await end(0);
    await row(1).getByText('End of 0').waitFor();
    expect(errors).toEqual([]);
  },
);

/** Opens the page of the run as root, with its own storage. */
async function openRun({ team_id, run_id }: { team_id: string; run_id: string }): Promise<Page> {
  const { page } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(`${plane.url}/teams/${team_id}/runs/${run_id}`);
  return page;
}

/** A run of a new team whose only step belongs to a person. */
async function startRun(name: string) {
  const step = { step_key: 'title', member_id: 'dev' };
  const spec = { members: [{ member_id: 'dev', executor: 'human' }], steps: [step] };
  const { id: team_id } = await plane.client.call('createTeam', { body: { name, spec } as never });
  const { id: run_id } = await plane.client.call('createRun', { params: { team_id }, body: { input: {} } });
  return { team_id, run_id };
}

browserTest('an answer that comes too late is not taken as the answer to the next question', async () => {
  const params = await startRun('late');
  const ask = (reason: string) =>
    plane.client.call('requireStepInput', { params: { ...params, step_key: 'title' }, body: { reason } });
  await ask('Which title?');
  const [mine, theirs] = await Promise.all([openRun(params), openRun(params)]);
  const card = (page: Page, text: string) => page.getByRole('article').filter({ hasText: text });
  const fill = (page: Page, question: string, text: string) =>
    card(page, question).getByLabel('Answer').fill(text);
  const send = (page: Page, question: string) =>
    card(page, question).getByRole('button', { name: 'Send answer' }).click();

  /** They answer the question, and more happens, before what is sent from here arrives. */
  const sendTooLate = async (question: string, answer: string, meanwhile?: () => Promise<unknown>) => {
    const [is_sent, may_arrive] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const hold = async (route: Route) => {
      is_sent.resolve();
      await may_arrive.promise;
      await route.continue();
    };
    await mine.route('**/steps/title/resume', hold, { times: 1 });
    await send(mine, question);
    await is_sent.promise;
    await fill(theirs, question, answer);
    await send(theirs, question);
    await card(theirs, question).waitFor({ state: 'detached' });
    await meanwhile?.();
    may_arrive.resolve();
  };
  await fill(mine, 'Which title?', '"Rain"');
  await card(mine, 'Which title?').getByLabel('Send as JSON').check();
  await sendTooLate('Which title?', 'Snow', () => ask('Print it?'));
  await mine.getByText('Not sent: the question was already answered').first().waitFor();
  // What was typed is not lost, but it is only sent if the user wants it as the answer to this question.
  expect(await card(mine, 'Print it?').getByLabel('Answer').inputValue()).toBe('"Rain"');
  expect(await card(mine, 'Print it?').getByLabel('Send as JSON').isChecked()).toBe(true);
  const steps = await plane.client.call('listSteps', { params });
  expect(steps).toMatchObject([{ status: 'input_required', error_text: 'Print it?', answer: 'Snow' }]);
  // Nothing shows the answer when the step asks no more.
  await sendTooLate('Print it?', 'No');
  await mine.getByText('step is running').first().waitFor();
});

browserTest(
  'the click for Cancel run does not restart a run that has just ended, and neither does a stale page',
  async () => {
    const { team_id, run_id } = await startRun('again');
    const of_step = { params: { team_id, run_id, step_key: 'title' } };
    await plane.client.call('startStep', of_step);
    const page = await openRun({ team_id, run_id });
    await page.getByRole('button', { name: 'Cancel run…' }).waitFor();
    // The second click of a double click, for example: it hits what takes the place of the button.
    const clicked = page.evaluate(`new Promise((resolve) => {
      new MutationObserver((_, observer) => {
        const button = [...document.querySelectorAll('button')].find((one) => one.textContent === 'Restart run…');
        if (!button) return;
        observer.disconnect();
        button.click();
        resolve();
      }).observe(document.body, { childList: true, subtree: true, characterData: true });
    })`);
    await plane.client.call('completeStep', { ...of_step, body: {} });
    await clicked;
    // As long as such clicks are ignored: `src/web/ui/replaced.ts`.
    await page.waitForTimeout(450);
    const get = () => plane.client.call('getRun', { params: { team_id, run_id } });
    expect(await get()).toMatchObject({ status: 'completed', attempt: 1 });
    const dialog = page.getByRole('dialog', { name: 'Restart run 1?' });
    expect(await dialog.count()).toBe(0);
    await page.getByRole('button', { name: 'Restart run…' }).click();
    await dialog.waitFor();
    // Somebody else is faster.
    await plane.client.call('restartRun', { params: { team_id, run_id } });
    await dialog.getByRole('button', { name: 'Restart run' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('run changed concurrently; reload and retry').waitFor();
    expect(await get()).toMatchObject({ status: 'running', attempt: 2 });
    await page.getByRole('button', { name: 'Cancel run…' }).waitFor();
  },
);
