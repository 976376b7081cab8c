/**
 * Nodes in the web UI, with a real node: it joins with the token from the page, is registered with the form, is tested step
 * by step, and cannot be deleted while it has agents.
 */
import type { Page } from 'playwright-core';
import { parse } from 'smol-toml';
import { afterAll, beforeAll, expect } from 'vitest';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import {
  browserTest,
  longBrowserTest,
  sharedBrowser,
  signIn,
  type WatchedPage,
} from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

/** A silent node becomes suspect after 6 s instead of 15 s. */
const FAST = { SVC_TEST_TIME_SCALE: '0.4' };

let plane: TestPlane;
let node: TestAgentNode;
const browser = sharedBrowser();

beforeAll(async () => {
  plane = await TestPlane.open({ env: { ...WITH_NODES, ...FAST } });
  node = await TestAgentNode.prepare(plane, { id: 'gpu-1', env: FAST });
});
afterAll(async () => {
  await node.close();
  await plane.close();
});

async function open(path: string, token = plane.token): Promise<WatchedPage> {
  const watched = await browser.open(plane);
  await signIn(watched.page, plane, { token });
  await watched.page.goto(plane.url + path);
  return watched;
}

const row = (page: Page, id: string) => page.getByRole('row').filter({ hasText: id });
/** Each step of the connection test with its result, as a screen reader reads it. */
const steps = async (page: Page) => {
  const test = page.getByRole('region', { name: 'Test connection' });
  await test.getByRole('button', { name: 'Test again' }).waitFor();
  const lines = await test.locator('ol > li').allTextContents();
  return lines.map((line) => /^[A-Za-z ]+? (?:passed|failed|not tested)/.exec(line)?.[0]);
};

browserTest('only root sees nodes', async () => {
  const body = { username: 'leo', password: 'another long password' };
  await plane.client.call('createUser', { body: { ...body, role: 'user' } });
  const { token } = await plane.client.call('login', { body });
  const { page } = await open('/nodes', token);
  await page.getByRole('alert').getByText('root required').waitFor();
});

browserTest('the token is hidden until it is revealed, and is replaced when it is rotated', async () => {
  const { page, errors } = await open('/nodes');
  await page.getByText('No other nodes.').waitFor();
  // The list says that it looks for agents until the node has answered.
  const held = Promise.withResolvers<void>();
  await page.route('**/api/presets*', (route) => held.promise.then(() => route.continue()));
  await page.reload();
  const looking = row(page, 'main').getByText('Looking…');
  await looking.waitFor();
  held.resolve();
  await looking.waitFor({ state: 'detached' });
  await row(page, 'main').getByText('connected').waitFor();
  await page.getByRole('button', { name: 'Join node with token' }).click();
  const token = page.getByLabel('Token', { exact: true });
  const toml = page.getByLabel('Configuration');
  const { token: real } = await plane.client.call('getBootstrapToken');
  expect(await token.inputValue()).toMatch(/^•+$/);
  expect(await toml.inputValue()).not.toContain(real);
  await page.getByRole('button', { name: 'Show token' }).click();
  expect(await token.inputValue()).toBe(real);
  await page.getByLabel('Node ID').fill('gpu-1');
  expect(parse(await toml.inputValue())).toMatchObject({
    server: { role: 'node', node_id: 'gpu-1' },
    internal_grpc: { bootstrap: { token: real } },
  });
  await page.getByRole('button', { name: 'Rotate token…' }).click();
  await page.getByRole('button', { name: 'Rotate token', exact: true }).click();
  await expect.poll(() => token.inputValue()).not.toBe(real);
  expect((await plane.client.call('getBootstrapToken')).token).toBe(await token.inputValue());
  expect(errors).toEqual([]);
});

browserTest(
  'a node joins with the token from the page, is registered and tested, and cannot be deleted while it has agents',
  { timeout: 240_000 },
  async () => {
    const { page } = await open('/nodes');
    await page.getByRole('button', { name: 'Join node with token' }).click();
    await page.getByRole('button', { name: 'Show token' }).click();
    const token = await page.getByLabel('Token', { exact: true }).inputValue();
    await page.keyboard.press('Escape');

    // Errors appear at their fields, and the input survives a reload.
    await page.getByRole('button', { name: 'Register node', exact: true }).first().click();
    const dialog = page.getByRole('dialog');
    const submit = dialog.getByRole('button', { name: 'Register node', exact: true });
    await dialog.getByLabel('ID').fill('main');
    await dialog.getByLabel('Target').fill('http://127.0.0.1');
    await submit.click();
    await dialog.getByText('agent node id is reserved').waitFor();
    expect(await dialog.getByLabel('ID').getAttribute('aria-invalid')).toBe('true');
    await dialog.getByLabel('ID').fill('gpu-1');
    await submit.click();
    await dialog.getByText('grpc_target must be https://<host>:<port>').waitFor();
    expect(await dialog.getByLabel('Target').getAttribute('aria-invalid')).toBe('true');
    await page.reload();
    expect(await dialog.getByLabel('ID').inputValue()).toBe('gpu-1');
    await dialog.getByLabel('Target').fill(node.target);
    await dialog.getByLabel('Worktree root').fill('/nowhere/at/all');
    await submit.click();

    // Nothing runs there yet, so the test reports which step fails and what to check.
    const panel = page.getByRole('region', { name: 'gpu-1' });
    await panel.getByRole('heading', { name: 'Test connection' }).waitFor();
    await panel.getByText('failed to connect to remote node').waitFor();
    await panel.getByText('nothing answers there: check that svc runs on the node').waitFor();
    const left = ['TLS not tested', 'Auth not tested', 'Version not tested', 'Worktree root not tested'];
    expect(await steps(page)).toEqual(['DNS passed', 'TCP failed', ...left]);
    const address = node.target.replace('https://', '');
    await row(page, 'gpu-1').getByText(`TCP: nothing answers on ${address}`).waitFor();
    await row(page, 'gpu-1').getByRole('button', { name: 'Test' }).click();
    await panel.getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('dialog', { name: 'Edit gpu-1' }).waitFor();
    // A draft holds what the user has changed, and does not undo what others change meanwhile.
    await dialog.getByLabel('Name', { exact: true }).fill('Drafted');
    const params = { node_id: 'gpu-1' };
    await plane.client.call('updateAgentNode', { params, body: { tls_server_name: 'gpu.lan' } });
    await page.reload();
    await panel.getByRole('button', { name: 'Edit' }).click();
    expect(await dialog.getByLabel('Name', { exact: true }).inputValue()).toBe('Drafted');
    expect(await dialog.getByLabel('TLS server name').inputValue()).toBe('gpu.lan');
    await dialog.getByRole('button', { name: 'Discard changes' }).click();
    expect(await dialog.getByLabel('Name', { exact: true }).inputValue()).toBe('gpu-1');
    await dialog.getByLabel('Name', { exact: true }).fill('GPU box');
    await plane.client.call('updateAgentNode', { params, body: { tls_server_name: null } });
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await plane.client.call('getAgentNode', { params })).toMatchObject({
      name: 'GPU box',
      tls_server_name: null,
    });
    await plane.client.call('updateAgentNode', { params, body: { name: 'gpu-1' } });
    await panel.getByRole('button', { name: 'Edit' }).click();
    // Escape closes the dialog, and then the panel.
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await panel.waitFor({ state: 'detached' });
    await page.goBack();

    await node.start({ SVC_INTERNAL_GRPC_BOOTSTRAP_TOKEN: token });
    await node.linked();
    await panel.getByRole('button', { name: 'Test again' }).click();
    // One click fixes what the test found.
    await panel.getByRole('button', { name: 'Use the root configured on the node' }).click();
    const all = ['DNS passed', 'TCP passed', 'TLS passed', 'Auth passed', 'Version passed'];
    await expect.poll(() => steps(page)).toEqual(all);
    expect((await node.record()).default_worktree_root).toBe(null);

    const agent = await node.agent('true', { name: 'stays-there' });
    await plane.finished(agent.id);
    await panel.getByText('Delete its agent first:').waitFor();
    await panel.getByRole('link', { name: 'stays-there' }).waitFor();
    expect(await panel.getByRole('button', { name: 'Delete…' }).isDisabled()).toBe(true);
    await panel.getByText('0 running, 1 in total').waitFor();
    await panel
      .getByText(/GiB|TiB/)
      .first()
      .waitFor();
    await panel.getByRole('heading', { name: 'Agents found' }).waitFor();
    await page.keyboard.press('Escape');
    await panel.waitFor({ state: 'detached' });
    await row(page, 'gpu-1').getByText('connected').waitFor();
    await row(page, 'gpu-1').getByText('Configured on the node').waitFor();
    await row(page, 'gpu-1').getByText('0 running · 1 agent').waitFor();
    await row(page, 'gpu-1')
      .getByText(/^[\d.]+ ms$/)
      .waitFor();

    await plane.client.call('deleteAgent', { params: { agent_id: agent.id } });
    await page.getByRole('link', { name: 'gpu-1' }).click();
    await panel.getByRole('button', { name: 'Delete…' }).click();
    await panel.getByRole('button', { name: 'Delete gpu-1' }).click();
    await page.getByText('No other nodes.').waitFor();
  },
);

longBrowserTest(
  'a stop for an agent on an unreachable node can be withdrawn, and agent and node can be forgotten',
  async () => {
    await node.register();
    await node.until('connected');
    const [agent, other] = await Promise.all([
      node.agent('exec sleep 3600', { name: 'far-away' }),
      node.agent('exec sleep 3600', { name: 'further' }),
    ]);
    await node.kill();
    const { page } = await open(`/agents/${agent.id}`);
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByText('Node gpu-1 is unreachable. The agent stops when the node is back.').waitFor();
    expect((await plane.get(agent.id)).pending).toBe('stop');
    await page.getByRole('button', { name: 'Withdraw stop' }).click();
    await page.getByRole('button', { name: 'Withdraw stop' }).waitFor({ state: 'detached' });
    expect((await plane.get(agent.id)).pending).toBeNull();

    await node.until('suspect');
    await page.getByRole('button', { name: 'More' }).last().click();
    await page.getByRole('menuitem', { name: 'Forget' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Use this only if the machine of node gpu-1 is permanently gone.').waitFor();
    await dialog.getByText(`folder ${node.work}`).waitFor();
    await dialog.getByText(`the processes of session ${agent.session_id}`).waitFor();
    await dialog.getByRole('button', { name: 'Forget', exact: true }).click();
    await page.waitForURL(`${plane.url}/agents`);
    await expect(plane.get(agent.id)).rejects.toThrow('agent not found');

    await page.goto(`${plane.url}/nodes?node=gpu-1`);
    await page.getByRole('button', { name: 'Forget…' }).click();
    await page.getByRole('list', { name: 'Left on the machine' }).getByText('further').waitFor();
    await page.getByRole('button', { name: 'Forget', exact: true }).click();
    await page.getByText('No other nodes.').waitFor();
    await expect(plane.get(other.id)).rejects.toThrow('agent not found');
  },
);
