/** The web UI of a control plane that runs no agents itself (`server.local_node = false`). */
import { afterAll, beforeAll, expect } from 'vitest';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { browserTest, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
let node: TestAgentNode | undefined;
const browser = sharedBrowser();

beforeAll(async () => {
  plane = await TestPlane.open({ env: { ...WITH_NODES, SVC_SERVER_LOCAL_NODE: 'false' } });
});
afterAll(async () => {
  await node?.close();
  await plane.close();
});

browserTest('forms offer only registered nodes, and link to Nodes if none is registered', async () => {
  const { page } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents/new`);
  await page.getByText('Agents run on nodes, and there are no nodes yet.').waitFor();
  await page.getByRole('link', { name: 'Open Nodes' }).click();
  await page.getByText('No nodes yet.').waitFor();

  node = await TestAgentNode.open(plane);
  await page.goto(`${plane.url}/agents/new`);
  const field = page.getByRole('combobox', { name: 'Node', exact: true });
  await expect.poll(() => field.locator('option').allTextContents()).toEqual(['node n1']);
  expect(await field.inputValue()).toBe('n1');

  await page.goto(`${plane.url}/teams/new?template=pipeline`);
  // The bar of phones has a button with this name too.
  await page.getByRole('main').getByText('More', { exact: true }).first().click();
  await expect.poll(() => field.locator('option').allTextContents()).toEqual(['node n1']);
  await page.getByRole('button', { name: 'Create team' }).click();
  await page.getByText('node:n1').waitFor();
});
