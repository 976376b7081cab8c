/** The screens of which the tests compare pictures: where each is, and what it shows once it is complete. */
import type { Page } from 'playwright-core';
import type { Scene } from '../../src/testing/scene.ts';

export interface ScreenPicture {
  name: string;
  path: string;
  /** Resolves once the screen is complete. */
  ready(page: Page): Promise<unknown>;
  /** With the frame around the screen; on a phone always. */
  whole?: true;
  /** A selector of elements that differ between runs or versions. */
  hidden?: string;
  /** Light, dark and on a phone by default. */
  looks?: readonly string[];
}

/** Also on a phone on its side. Few screens: the others have the same header and navigation. */
const WITH_SIDEWAYS = ['light', 'dark', 'phone', 'sideways'];

const title = (name: string | RegExp) => (page: Page) =>
  page.getByRole('heading', { level: 1, name }).first().waitFor();
const text = (shown: string | RegExp) => (page: Page) =>
  page.getByText(shown).filter({ visible: true }).first().waitFor();
const option = (page: Page) =>
  page
    .getByRole('button', { name: /^(1 )?Allow/ })
    .first()
    .waitFor();

const settingsTab = (tab: string): ScreenPicture => ({
  name: `settings-${tab}`,
  path: `/settings/${tab}`,
  ready: title('Settings'),
});

/** Pages before sign-in. */
export const entryScreens: ScreenPicture[] = [
  { name: 'login', path: '/login', ready: title('Sign in'), whole: true, hidden: 'footer' },
  { name: 'join', path: `/join#t=${'a'.repeat(43)}`, ready: title(/.+/), whole: true, hidden: 'footer' },
];

/** The screens of a service without agents. */
export const newScreens: ScreenPicture[] = [
  { name: 'agents-empty', path: '/agents', ready: title('Agents') },
  { name: 'approvals-empty', path: '/approvals', ready: title('Approvals') },
  { name: 'teams-empty', path: '/teams', ready: title('Teams') },
  { name: 'runs-empty', path: '/runs', ready: title('Runs') },
  { name: 'tasks-empty', path: '/tasks', ready: title('Tasks') },
  { name: 'mail', path: '/mail', ready: title('Mail') },
  { name: 'team-new', path: '/teams/new', ready: title(/.+/) },
  ...['account', 'passkeys', 'appearance', 'shortcuts', 'notifications'].map(settingsTab),
];

/** `shown` returns the id that pages show for an id of the scene. */
export function sceneScreens(scene: Scene, shown: (id: string) => string): ScreenPicture[] {
  const agent = (name: string) => `/agents/${shown(scene.agents[name]!)}`;
  const { team, run_id, review, task } = scene;
  return [
    {
      name: 'agents',
      path: '/agents',
      ready: text('fix-checkout-race'),
      whole: true,
      looks: WITH_SIDEWAYS,
    },
    {
      name: 'conversation',
      path: `${agent('gift-cards')}/conversation`,
      ready: text(/Gift cards become/),
      looks: WITH_SIDEWAYS,
    },
    { name: 'conversation-review', path: `${agent('fix-checkout-race')}/conversation`, ready: option },
    {
      name: 'conversation-idle',
      path: `${agent('api-docs')}/conversation`,
      ready: text(/describes all four/),
    },
    { name: 'output', path: `${agent('watch-build')}/output`, ready: text(/build 60 in/) },
    {
      name: 'output-failed',
      path: `${agent('migrate-orders')}/output`,
      ready: text('migrating table orders'),
    },
    { name: 'changes', path: `${agent('api-docs')}/changes`, ready: text('api.md') },
    { name: 'events', path: `${agent('api-docs')}/events`, ready: text(/session\/update|agent_message/) },
    { name: 'timeline', path: `${agent('api-docs')}/timeline`, ready: text('Edit docs/api.md') },
    { name: 'approvals', path: '/approvals', ready: text('vat-rates') },
    { name: 'review', path: `/approvals?review=${shown(review)}`, ready: option, looks: WITH_SIDEWAYS },
    { name: 'teams', path: '/teams', ready: text('release-notes') },
    { name: 'team', path: `/teams/${shown(team)}`, ready: title('release-notes') },
    { name: 'team-edit', path: `/teams/${shown(team)}/edit`, ready: title(/.+/) },
    { name: 'runs', path: '/runs', ready: text(/release-notes/) },
    {
      name: 'run',
      path: `/teams/${shown(team)}/runs/${shown(run_id)}`,
      ready: title(/Run 1/),
      looks: WITH_SIDEWAYS,
    },
    {
      name: 'run-timeline',
      path: `/teams/${shown(team)}/runs/${shown(run_id)}?view=timeline`,
      ready: title(/Run 1/),
    },
    { name: 'tasks', path: '/tasks', ready: text('Announce the price change') },
    { name: 'tasks-list', path: '/tasks?view=list', ready: text('Announce the price change') },
    { name: 'task', path: `/tasks?task=${shown(task)}`, ready: text('Start run') },
    { name: 'nodes', path: '/nodes', ready: text('gpu-1') },
    { name: 'node', path: '/nodes?node=gpu-1', ready: text('Test connection') },
    { name: 'audit', path: '/audit', ready: text(/created/) },
    { name: 'worktrees', path: '/worktrees', ready: title(/.+/) },
    { name: 'users', path: '/users', ready: text('ben') },
    { name: 'new-agent', path: '/agents/new', ready: title('New agent') },
    ...['tokens', 'devices', 'config'].map(settingsTab),
    { name: 'api', path: '/docs', ready: title('API') },
    {
      name: 'palette',
      path: '/agents',
      whole: true,
      ready: async (page) => {
        await text('fix-checkout-race')(page);
        await page.keyboard.press('Control+k');
        await page.getByRole('dialog').waitFor();
      },
      looks: ['light', 'dark'],
    },
  ];
}
