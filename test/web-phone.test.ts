/** Lists on a phone, upright and on its side. */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect } from 'vitest';
import { browserTest, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

const scripted = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
let plane: TestPlane;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.open();
  for (let at = 0; at < 16; at++) {
    await plane.client.call('createAgent', {
      body: { name: `agent-${at}`, workdir: plane.work, command: 'true' },
    });
  }
});
afterAll(async () => {
  await plane.close();
});

browserTest(
  'the round button of a list is hidden after scrolling down, shown to the keyboard, and covers no row at the end',
  async () => {
    const { page, errors } = await browser.open(plane, { screen: 'phone' });
    await signIn(page, plane);
    await page.goto(`${plane.url}/agents`);
    const button = page.getByRole('link', { name: 'New agent' });
    const list = page.locator('main > .scroll-y');
    await list.getByRole('link', { name: 'agent-0', exact: true }).waitFor();
    const opacity = () =>
      button.evaluate((link) => link.ownerDocument.defaultView!.getComputedStyle(link).opacity);
    const scroll = (px: number) => list.evaluate((box, by) => box.scrollBy(0, by), px);
    /** Whether a tap on the middle of the button presses it. */
    const takesTaps = () =>
      button.evaluate((link) => {
        const { x, y, width, height } = link.getBoundingClientRect();
        return link.contains(link.ownerDocument.elementFromPoint(x + width / 2, y + height / 2));
      });
    expect([await opacity(), await takesTaps()]).toEqual(['1', true]);
    await scroll(100);
    await expect.poll(opacity).toBe('0');
    expect(await takesTaps()).toBe(false);

    for (let presses = 0; presses < 20; presses++) {
      if (await button.evaluate((link) => link === link.ownerDocument.activeElement)) break;
      await page.keyboard.press('Tab');
    }
    await expect.poll(opacity).toBe('1');
    await button.evaluate((link) => link.blur());
    await scroll(40);
    await expect.poll(opacity).toBe('0');

    await scroll(-40);
    await expect.poll(opacity).toBe('1');
    await scroll(40);
    await expect.poll(opacity).toBe('0');
    await scroll(10_000);
    await expect.poll(opacity).toBe('1');
    const { y } = (await button.boundingBox())!;
    const last = (await list.getByRole('row').last().boundingBox())!;
    expect(last.y + last.height).toBeLessThanOrEqual(y);
    expect(errors).toEqual([]);
  },
);

browserTest(
  'on a phone on its side, the filters of agents are in one row, and no text is cut off',
  async () => {
    const { page } = await browser.open(plane, { screen: 'sideways' });
    await signIn(page, plane);
    await page.goto(`${plane.url}/agents`);
    const group = page.getByRole('combobox', { name: 'Group' });
    await group.selectOption('By repository');
    const nav = page.getByRole('navigation', { name: 'Show' });
    const filter = page.getByRole('searchbox', { name: 'Filter agents' });
    const middles = await Promise.all(
      [nav, filter].map(async (part) => {
        const { y, height } = (await part.boundingBox())!;
        return Math.round(y + height / 2);
      }),
    );
    expect(middles[0]).toBe(middles[1]);
    expect(await nav.evaluate((row) => row.scrollWidth - row.clientWidth)).toBe(0);
    // As wide as the browser makes it for its longest text.
    const cut = await group.evaluate((select) => {
      const width = select.getBoundingClientRect().width;
      select.style.maxWidth = 'none';
      select.style.width = 'max-content';
      return select.getBoundingClientRect().width - width;
    });
    expect(cut).toBeLessThanOrEqual(0.5);
    const { height } = (await page.locator('header').boundingBox())!;
    expect(height).toBeLessThanOrEqual(116);
  },
);

browserTest('on a phone, the error of an action in the sheet of a run is shown after the sheet', async () => {
  const spec = { members: [{ member_id: 'ann' }], steps: [{ step_key: 'look', member_id: 'ann' }] };
  const { id: team_id } = await plane.client.call('createTeam', { body: { name: 'pocket', spec } as never });
  const { id: run_id } = await plane.client.call('createRun', { params: { team_id }, body: { input: {} } });
  await plane.client.call('cancelRun', { params: { team_id, run_id } });
  const { page } = await browser.open(plane, { screen: 'phone' });
  await signIn(page, plane);
  await page.goto(`${plane.url}/teams/${team_id}/runs/${run_id}`);
  await page.route('**/resume', (route) => route.abort());
  await page.getByRole('heading', { level: 1, name: 'Run 1 · pocket' }).getByText('cancelled').waitFor();
  await page.getByRole('button', { name: 'Actions' }).click();
  await page.getByRole('dialog', { name: 'Actions' }).getByRole('button', { name: 'Resume run' }).click();
  await page.getByText('The service is not responding.').waitFor();
});

browserTest(
  'on a phone, the button to the latest row is below the list, where it covers no text',
  async () => {
    const update = (n: number) => ({
      sessionUpdate: 'agent_message_chunk',
      messageId: String(n),
      content: { type: 'text', text: `A line of the agent, number ${n}.` },
    });
    const turn = Array.from({ length: 80 }, (_, n) => update(n));
    const argv = [process.execPath, scripted, 'sends_updates', JSON.stringify([turn])];
    const talker = await plane.agent(argv, { name: 'talker', protocol: 'acp', prompt: 'Begin' });
    const printer = await plane.agent('for n in $(seq 200); do echo "line $n"; sleep 0.001; done', {
      name: 'printer',
    });
    await plane.finished(printer.id);
    const { page, errors } = await browser.open(plane, { screen: 'phone' });
    await signIn(page, plane);
    const lists = [
      [`${talker.id}/conversation`, page.getByRole('log'), 'A line of the agent, number 79.'],
      [`${printer.id}/output`, page.getByRole('region', { name: 'Output' }), 'line 200'],
      [`${talker.id}/events`, page.getByRole('region', { name: 'Events' }), 'number 79'],
    ] as const;
    for (const [path, list, last] of lists) {
      await page.goto(`${plane.url}/agents/${path}`);
      await list.getByText(last).first().waitFor();
      await list.hover();
      const button = page.getByRole('button', { name: /^Jump to latest$|new$/ });
      // The list must have scrolled to its end before.
      await expect.poll(() => list.evaluate((box) => box.scrollTop)).toBeGreaterThan(0);
      await page.mouse.wheel(0, -400);
      await button.waitFor();
      const [above, below] = [(await list.boundingBox())!, (await button.boundingBox())!];
      expect(below.y, path).toBeGreaterThanOrEqual(above.y + above.height);
      for (const number of await list.locator('a[href^="#L"]').all())
        expect((await number.boundingBox())!.height).toBeGreaterThanOrEqual(24);
      await button.tap();
      await button.waitFor({ state: 'detached' });
      const rest = () => list.evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
      await expect.poll(rest).toBeLessThanOrEqual(1);
    }
    expect(errors).toEqual([]);
  },
);

browserTest('on a phone, the output of a failed agent says when it will be restarted', async () => {
  const { id } = await plane.agent('echo broken; exit 3', { name: 'again', restart_policy: 'on_failure' });
  const { page } = await browser.open(plane, { screen: 'phone' });
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents/${id}/output`);
  await page
    .getByRole('region', { name: 'Failure' })
    .getByText(/^Exit code 3 · restarts in \d/)
    .waitFor();
  await plane.client.call('stopAgent', { params: { agent_id: id }, body: {} });
});

browserTest(
  'on a phone, a second tap on Send does not cancel the turn that the first one started',
  async () => {
    const argv = [process.execPath, scripted, 'sends_updates', JSON.stringify([[], [{ sleep: 86_400_000 }]])];
    const { id } = await plane.agent(argv, { name: 'sleeper', protocol: 'acp', prompt: 'Begin' });
    const { page } = await browser.open(plane, { screen: 'phone' });
    await signIn(page, plane);
    const cancellations: string[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST' && request.url().endsWith('/cancel')) cancellations.push(request.url());
    });
    await page.goto(`${plane.url}/agents/${id}/conversation`);
    await page.getByRole('textbox', { name: 'Prompt for sleeper' }).fill('Sleep');
    // Presses the button that takes the place of Send in the frame in which it appears.
    const pressed = page.evaluate(`new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      const button = document.querySelector('form button[aria-label="Cancel turn"]');
      if (!button) return;
      observer.disconnect();
      button.click();
      resolve();
    });
    observer.observe(document.body, { subtree: true, childList: true });
  })`);
    await page.getByRole('button', { name: 'Send', exact: true }).tap();
    await pressed;
    const cancel = page.locator('form').getByRole('button', { name: 'Cancel turn' });
    await page.waitForTimeout(1100);
    expect(cancellations).toEqual([]);
    // After the page is opened, there was no other button to tap.
    await page.reload();
    await cancel.tap();
    await expect.poll(() => cancellations.length).toBe(1);
  },
);
