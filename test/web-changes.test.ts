/**
 * The changes of an agent in a real browser: files, lines, comments on lines that become one prompt, and worktrees that outlive
 * their agents.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect } from 'vitest';
import {
  browserTest,
  longBrowserTest,
  pressComposing,
  sharedBrowser,
  signIn,
} from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { commit, git, makeRepository } from '../src/testing/repository.ts';

let plane: TestPlane;
const browser = sharedBrowser();
let repo: string;

beforeAll(async () => {
  plane = await TestPlane.open();
  const lines = Array.from({ length: 40 }, (_, at) => `line ${at + 1}\n`).join('');
  repo = makeRepository(join(plane.work, 'shop'), { 'cart.ts': lines, 'gone.ts': 'gone\n' });
}, 120_000);
afterAll(async () => {
  await plane.close();
});

const scripted = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
const slow = { timeout: 30_000 };

browserTest('comments on lines survive a reload, and are sent to the agent as one prompt', async () => {
  const { id: agent_id, workdir } = await plane.client.call('createAgent', {
    body: {
      name: 'edits',
      preset: 'demo',
      worktree_mode: 'create_worktree',
      worktree_repo: repo,
      start: true,
    },
  });
  await writeFile(join(workdir, 'cart.ts'), 'const total = 0;\nline 2\n');
  await writeFile(join(workdir, '<img src=x onerror=alert(1)>.txt'), '<script>alert(1)</script>\n');
  await writeFile(join(workdir, 'blob.bin'), Buffer.from([0, 1, 2, 0]));
  await writeFile(join(workdir, 'empty.sh'), '', { mode: 0o755 });
  await writeFile(join(workdir, 'long.txt'), 'x\n'.repeat(5000));
  await rm(join(workdir, 'gone.ts'));
  await mkdir(join(workdir, 'docs/notes'), { recursive: true });
  await writeFile(join(workdir, 'docs/notes/why.md'), 'because\n');

  const { page, errors, foreign_requests } = await browser.open(plane);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents/${agent_id}/changes`);
  const files = page.getByRole('navigation', { name: 'Changed files' });
  await files.getByRole('button', { name: /gone\.ts deleted/ }).waitFor(slow);
  // All files are in one scroll, and the tree goes to each.
  const file = (path: string) => page.getByRole('article', { name: path, exact: true });
  const isAtTop = (path: string) =>
    page.evaluate<boolean>(`(() => {
      const own = document.querySelector('[data-path="${path}"]');
      return Math.abs(own.offsetTop - own.offsetParent.scrollTop) < 1;
    })()`);
  await files.getByRole('button', { name: /cart\.ts modified/ }).click();
  await expect.poll(() => isAtTop('cart.ts'), slow).toBe(true);
  await file('cart.ts').getByText('const total = 0;').waitFor();
  await files.getByRole('button', { name: /blob\.bin/ }).click();
  await file('blob.bin').getByText('This is a binary file.').waitFor();
  await file('empty.sh').getByText('This file is empty.').waitFor();
  await file('empty.sh').getByText('The file is executable.').waitFor();
  await files.getByRole('button', { name: /long\.txt/ }).click();
  await page.getByRole('button', { name: 'Download the diff' }).waitFor();
  await files.getByRole('button', { name: /^<img src=x/ }).click();
  await page.getByRole('cell', { name: '<script>alert(1)</script>' }).waitFor();
  // A viewed file is closed.
  await file('gone.ts').getByText('gone', { exact: true }).waitFor();
  await file('gone.ts').getByLabel('Viewed').check();
  await file('gone.ts').getByRole('cell').waitFor({ state: 'detached' });
  await files.getByRole('button', { name: /gone\.ts deleted, viewed/ }).waitFor();
  await files.getByRole('button', { name: 'docs/notes', expanded: true }).click();
  await files.getByRole('button', { name: /why\.md/ }).waitFor({ state: 'detached' });
  await files.getByRole('button', { name: /docs\/notes/, expanded: false }).click();
  await files.getByRole('button', { name: /why\.md/ }).click();
  await page.getByRole('cell', { name: 'because' }).waitFor();

  await page.getByText('1/7 viewed').waitFor();

  // The ways out of the screen, each in two clicks: from the conversation to the merge command it takes three.
  const copied = async (item: string, note: string) => {
    await page.getByRole('button', { name: 'Use changes' }).click();
    await page.getByRole('menuitem', { name: item }).click();
    await page.getByText(note).waitFor(slow);
    return page.evaluate<string>('navigator.clipboard.readText()');
  };
  await page.goto(`${plane.url}/agents/${agent_id}/conversation`);
  await page.getByRole('link', { name: /^changes \d+/ }).click();
  const branch = (await plane.client.call('getChanges', { params: { agent_id } })).branch!;
  expect(await copied('Copy merge command', 'Merge command copied')).toBe(`git -C ${repo} merge ${branch}`);
  expect(await copied('Copy branch', 'Branch copied')).toBe(branch);
  expect(await copied('Copy patch', 'Patch copied')).toContain('+because');

  await files.getByRole('button', { name: /cart\.ts modified/ }).click();
  const cart = file('cart.ts');
  await page.locator('.token.keyword').getByText('const', { exact: true }).waitFor(slow);
  await page.locator('.token.number').getByText('0', { exact: true }).waitFor();
  await cart.getByRole('button', { name: 'Comment on line 1', exact: true }).click();
  await page.getByRole('textbox', { name: 'Comment on line 1' }).fill('Why not a sum?');
  await pressComposing(page, 'Escape');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('button', { name: 'Comment on removed line 40' }).click();
  await page.getByRole('textbox', { name: 'Comment on line 40' }).fill('Keep th');

  await page.reload();
  await page.getByText('Why not a sum?').waitFor(slow);
  expect(await file('gone.ts').getByLabel('Viewed').isChecked()).toBe(true);
  await page.getByRole('button', { name: 'Comment on removed line 40' }).click();
  expect(await page.getByRole('textbox', { name: 'Comment on line 40' }).inputValue()).toBe('Keep th');
  await page.getByRole('textbox', { name: 'Comment on line 40' }).fill('Keep this.');
  await page.getByRole('button', { name: 'Add comment' }).click();

  // A comment on several lines: its first line is part of the draft.
  await cart.getByRole('button', { name: 'Comment on line 2', exact: true }).click();
  await page.getByRole('textbox', { name: 'Comment on line 2' }).fill('Use a for');
  await page.getByLabel('From line').fill('0');
  await page.getByText('Enter a line from 1 to 2.').waitFor();
  expect(await page.getByRole('button', { name: 'Add comment' }).isDisabled()).toBe(true);
  await page.getByLabel('From line').fill('1');
  await page.reload();
  await cart.getByRole('button', { name: 'Comment on line 2', exact: true }).click();
  const range = page.getByRole('textbox', { name: 'Comment on lines 1 to 2' });
  expect(await range.inputValue()).toBe('Use a for');
  await range.fill('Use a formatter.');
  await page.getByLabel('From line').press('Control+Enter');
  await cart.getByText('on lines 1 to 2').waitFor();

  const bar = page.getByRole('region', { name: 'Comments' });
  await bar.getByText('3 comments').waitFor();
  await page.keyboard.press('ControlOrMeta+Enter');
  await bar.waitFor({ state: 'detached' });
  const log = (await plane.client.call('getLog', { params: { agent_id } })) as unknown as {
    method?: string;
    payload: { params: { prompt: { text: string }[] } };
  }[];
  const prompts = log.filter(({ method }) => method === 'session/prompt');
  expect(prompts.map(({ payload }) => payload.params.prompt.map(({ text }) => text))).toEqual([
    [
      '3 comments on your changes:\n\ncart.ts:1\n> const total = 0;\n\nWhy not a sum?\n\ncart.ts:1-2\n> const total = 0;\n> line 2\n\nUse a formatter.\n\ncart.ts:40 (a line that you removed)\n> line 40\n\nKeep this.',
    ],
  ]);
  expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });
});

browserTest('a comment that is being written stays with its line while the file changes', async () => {
  const { id: agent_id, workdir } = await plane.client.call('createAgent', {
    body: { name: 'moves', command: 'true', worktree_mode: 'create_worktree', worktree_repo: repo },
  });
  const write = (...lines: string[]) =>
    writeFile(join(workdir, 'cart.ts'), lines.map((line) => `${line}\n`).join(''));
  await write('const total = 0;', 'line 2');
  const { page, errors } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents/${agent_id}/changes`);
  await page.getByRole('button', { name: 'Comment on line 1', exact: true }).click(slow);
  const box = page.getByRole('textbox', { name: 'Comment on line 1' });
  await box.fill('Why not a sum?');
  // Without taking the focus.
  const refresh = () => page.getByRole('button', { name: 'Refresh' }).dispatchEvent('click');
  await write('// first', '// second', 'const total = 0;', 'line 2');
  await refresh();
  await page.getByText('Line 1 is now line 3.').waitFor();
  expect(await box.inputValue()).toBe('Why not a sum?');
  await expect.poll(() => box.and(page.locator(':focus')).count()).toBe(1);
  // The line that has its old number now does not get the text.
  await page.getByRole('button', { name: 'Comment on line 1', exact: true }).click();
  await expect.poll(() => box.and(page.locator(':focus')).count()).toBe(1);
  await page.getByText('Line 1 is now line 3.').waitFor();
  await write('// first', 'line 2');
  await refresh();
  await page.getByText('This line is no longer part of the diff: const total = 0;').waitFor();
  await box.press('ControlOrMeta+Enter');
  await page.getByRole('region', { name: 'Comments' }).getByText('1 comment').waitFor();
  expect(await page.evaluate('JSON.stringify(localStorage)')).toContain('const total = 0;');
  expect(errors).toEqual([]);
});

browserTest('comments and drafts on a file stay within reach even when its changes are gone', async () => {
  const { id: agent_id, workdir } = await plane.client.call('createAgent', {
    body: { name: 'reverts', command: 'true', worktree_mode: 'create_worktree', worktree_repo: repo },
  });
  await writeFile(join(workdir, 'cart.ts'), 'const total = 0;\nlet count;\n');
  await writeFile(join(workdir, 'other.ts'), 'other\n');
  const { page } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents/${agent_id}/changes`);
  const file = page.getByRole('article', { name: 'cart.ts', exact: true });
  const comment = (text: string) => file.getByText(text, { exact: true });
  const box = file.getByRole('textbox', { name: 'Comment on line 2' });
  const refresh = () => page.getByRole('button', { name: 'Refresh' }).dispatchEvent('click');
  await file.getByRole('button', { name: 'Comment on line 1', exact: true }).click(slow);
  await file.getByRole('textbox').fill('Why not a sum?');
  await page.keyboard.press('Control+Enter');
  await file.getByRole('button', { name: 'Comment on line 2', exact: true }).click();
  await box.fill('Name');

  // Also after a reload, which closes the box.
  await page.reload();
  await comment('draft on line 2, not added yet').waitFor(slow);
  await file.getByRole('button', { name: 'Edit comment' }).last().click();
  await box.and(page.locator(':focus')).waitFor();
  await page.keyboard.type(' i');

  // The comment that is being written stays open, with the focus.
  git(workdir, 'checkout', '--quiet', 'cart.ts');
  await refresh();
  await comment('This file no longer has changes.').waitFor(slow);
  await comment('on line 1, not shown in the diff').waitFor();
  await comment('Why not a sum?').waitFor();
  await box.and(page.locator(':focus')).waitFor();
  await page.keyboard.type('t');
  expect(await box.inputValue()).toBe('Name it');

  await page.reload();
  await comment('Why not a sum?').waitFor(slow);
  await comment('draft on line 2, not shown in the diff').waitFor();
  await comment('Name it').waitFor();
  await file.getByRole('button', { name: 'Edit comment' }).click();
  await page.keyboard.type(' well.');
  await page.keyboard.press('Control+Enter');
  const bar = page.getByRole('region', { name: 'Comments' });
  await bar.getByText('2 comments').waitFor();

  // Without any changes, and in a file whose lines are not shown.
  await rm(join(workdir, 'other.ts'));
  await refresh();
  await page.getByText('0 files').waitFor(slow);
  await comment('Name it well.').waitFor();
  await writeFile(join(workdir, 'cart.ts'), Buffer.from([0, 1, 2, 0]));
  await refresh();
  await comment('This is a binary file.').waitFor(slow);
  await comment('Why not a sum?').waitFor();
  git(workdir, 'checkout', '--quiet', 'cart.ts');
  await refresh();
  for (let left = 2; left > 0; left--) {
    await bar.getByText(`${left} comment`).waitFor();
    await file.getByRole('button', { name: 'Delete comment' }).first().click();
  }
  await page.getByText('No changes yet.').waitFor(slow);
});

browserTest('names and commands with letters of two scripts work in links and as copies', async () => {
  const name = 'отчёт_v2.md';
  const workdir = makeRepository(join(plane.work, 'reports'), { [name]: 'old\n' });
  // A shorter diff is shown in the conversation.
  const text = Array.from({ length: 60 }, (_, at) => `new ${at}\n`).join('');
  await writeFile(join(workdir, name), text);
  const command = `cat ${name}`;
  const updates = [
    {
      ...{ sessionUpdate: 'tool_call', toolCallId: 'edit', title: 'Edit', kind: 'edit', status: 'completed' },
      content: [{ type: 'diff', path: join(workdir, name), oldText: 'old\n', newText: text }],
    },
    {
      toolCall: { toolCallId: 'run', title: 'Run', kind: 'execute', rawInput: { command } },
      options: [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }],
    },
  ];
  const argv = [process.execPath, scripted, 'sends_updates', JSON.stringify([updates])];
  const agent = await plane.agent(argv, { protocol: 'acp', prompt: 'Begin', workdir });
  const { page } = await browser.open(plane);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents/${agent.id}/conversation`);
  const card = page.getByRole('article');
  await card.getByText('⟦U+043E⟧').first().waitFor(slow);
  await card.getByRole('button', { name: 'Copy' }).first().click();
  await card.getByRole('button', { name: 'Copied' }).waitFor();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(command);

  await page.getByRole('log').getByRole('button', { name: 'edit Edit' }).click();
  await page.getByRole('link', { name: 'Open in Changes' }).click();
  await page.getByRole('article', { name: '⟦U+043E⟧' }).getByText('new 59').waitFor(slow);
  expect(new URL(page.url()).searchParams.get('file')).toBe(name);
  expect(await page.getByRole('article').count()).toBe(1);
});

browserTest('hidden characters in files, lines and the branch are shown as code points', async () => {
  const { id: agent_id, workdir } = await plane.client.call('createAgent', {
    body: { name: 'sly', command: 'true', worktree_mode: 'create_worktree', worktree_repo: repo },
  });
  git(workdir, 'switch', '--quiet', '--create', 'fix\u202edone');
  await mkdir(join(workdir, 'li\u200bb'));
  await writeFile(join(workdir, 'li\u200bb/evil\u202egpj.ts'), 'if (admin\u2066) {\u0007\n');
  git(workdir, 'add', '--all');
  git(workdir, 'mv', 'gone.ts', 'go\u200dne.ts');
  const { page, errors } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents/${agent_id}/changes`);
  const file = page.getByRole('article', { name: 'li⟦U+200B⟧b/evil⟦U+202E⟧gpj.ts', exact: true });
  await file.getByText('if (admin⟦U+2066⟧) {⟦U+0007⟧').waitFor(slow);
  const files = page.getByRole('navigation', { name: 'Changed files' });
  await files.getByRole('button', { name: 'li⟦U+200B⟧b' }).waitFor();
  await files.getByRole('button', { name: /^evil⟦U\+202E⟧gpj\.ts added/ }).waitFor();
  await files.getByRole('button', { name: /^go⟦U\+200D⟧ne\.ts renamed from gone\.ts/ }).waitFor();
  await page.getByText(/^fix⟦U\+202E⟧done compared with/).waitFor();
  const shown = await page.getByRole('main').innerText();
  expect(shown).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u200b-\u200d\u0007]/);
  expect(errors).toEqual([]);
});

longBrowserTest('a diff shows more lines around its changes, and keeps the place and the focus', async () => {
  const lines = (text: string) => Array.from({ length: 400 }, (_, at) => `${text} ${at + 1}\n`);
  const long = makeRepository(join(plane.work, 'long'), { 'a.txt': lines('line').join('') });
  const { id: agent_id, workdir } = await plane.client.call('createAgent', {
    body: { name: 'wide', command: 'true', worktree_mode: 'create_worktree', worktree_repo: long },
  });
  const edited = lines('line');
  for (const line of [50, 80, 300]) edited[line - 1] = `edited ${line}\n`;
  await writeFile(join(workdir, 'a.txt'), edited.join(''));
  const { page, errors } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents/${agent_id}/changes`);
  const file = page.getByRole('article', { name: 'a.txt' });
  const more = (where: string) => file.getByRole('button', { name: `Show more lines ${where}`, exact: true });
  const line = (text: string) => file.getByText(text, { exact: true });
  await more('above line 80').waitFor(slow);
  expect(await file.getByRole('button', { name: /^Show more lines/ }).count()).toBe(4);
  expect(await line('line 60').count()).toBe(0);

  // With the keyboard: the line below the button stays where it is, and the focus at the change.
  const top = async () => (await line('edited 300').boundingBox())!.y;
  await more('above line 300').focus();
  const before = await top();
  await page.keyboard.press('Enter');
  await line('line 280').waitFor(slow);
  expect(Math.abs((await top()) - before)).toBeLessThan(2);
  const focused = () => page.evaluate('document.activeElement.textContent');
  await expect.poll(focused).toBe('Show more lines above line 300');
  // The gap between the first two changes is closed.
  await line('line 65').waitFor();
  expect(await more('above line 80').count()).toBe(0);
  expect(await line('line 279').count()).toBe(0);

  await page.keyboard.press('Enter');
  await line('line 200').waitFor(slow);
  await line('line 1').waitFor();
  // As many lines as asked for: the file may continue. The answer shows that it does not.
  await more('below line 300').waitFor();
  await more('below line 300').click();
  await line('line 400').waitFor(slow);
  await line('line 190').waitFor();
  expect(await file.getByRole('button', { name: /^Show more lines/ }).count()).toBe(0);
  expect(errors).toEqual([]);
});

longBrowserTest(
  'a phone shows one line number per line, also while its lines can be commented on',
  async () => {
    const { id, workdir } = await plane.client.call('createAgent', {
      body: { name: 'pocket', preset: 'demo', worktree_mode: 'create_worktree', worktree_repo: repo },
    });
    await writeFile(join(workdir, 'cart.ts'), 'first\nline 1\nline two\n');
    const { page } = await browser.open(plane, { screen: 'phone' });
    await signIn(page, plane);
    await page.goto(`${plane.url}/agents/${id}/changes`);
    await page.getByRole('button', { name: /cart\.ts modified/ }).tap();
    await page.getByRole('button', { name: 'Comment on removed line 2', exact: true }).waitFor(slow);
    const numbers =
      (await page.evaluate(`[...document.querySelectorAll('.diff-line')].slice(0, 3).map((line) =>
    [...line.querySelectorAll('.diff-gutter')].map((cell) => cell.innerText.trim()))`)) as string[][];
    expect(numbers).toEqual([
      ['', '1'],
      ['', '2'],
      ['', '2'],
    ]);
    const lines = (await page.evaluate(`[...document.querySelectorAll('.diff-line')].map((line) =>
    [...line.querySelectorAll('.diff-gutter')].map((cell) => cell.offsetWidth))`)) as number[][];
    for (const [empty, shown] of lines) {
      expect(empty).toBe(0);
      expect(shown).toBeGreaterThanOrEqual(24);
    }
    await page.getByRole('button', { name: 'Comment on removed line 2', exact: true }).tap();
    await page.getByRole('textbox', { name: 'Comment on line 2' }).waitFor();
  },
);

browserTest('a branch is pushed first, and then its forge opens a pull request', async () => {
  const code = makeRepository(join(plane.work, 'cart'), { 'cart.ts': 'one\n' });
  const bare = join(plane.work, 'cart.git');
  await mkdir(bare);
  git(bare, 'init', '--quiet', '--bare');
  const { id: agent_id, workdir } = await plane.client.call('createAgent', {
    body: { name: 'pushes', argv: ['true'], worktree_mode: 'create_worktree', worktree_repo: code },
  });
  commit(workdir, { 'cart.ts': 'two\n' }, 'two');
  const branch = git(workdir, 'symbolic-ref', '--short', 'HEAD');
  const { page, errors, foreign_requests } = await browser.open(plane);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents/${agent_id}/changes`);
  const use = page.getByRole('button', { name: 'Use changes' });
  const pushing = page.getByRole('menuitem', { name: 'Copy push command' });
  const opening = page.getByRole('menuitem', { name: /^Open (pull|merge) request/ });
  const inMenu = async (...names: string[]) => {
    await page.getByRole('button', { name: 'Refresh' }).click();
    await use.click();
    await page.getByRole('menuitem', { name: 'Copy branch' }).waitFor();
    const merging = page.getByRole('menuitem', { name: /push|request/ });
    await expect.poll(() => merging.allTextContents(), slow).toEqual(names);
  };

  // Without a remote, there is nothing to push to.
  await use.waitFor(slow);
  await inMenu();
  await page.keyboard.press('Escape');

  // A remote that is no forge, to which the copied command pushes.
  git(code, 'remote', 'add', 'origin', bare);
  await inMenu('Copy push command');
  await pushing.click();
  await page.getByText('Push command copied').waitFor(slow);
  const command = await page.evaluate<string>('navigator.clipboard.readText()');
  expect(command).toBe(`git -C ${code} push -u origin refs/heads/${branch}`);

  git(code, 'remote', 'set-url', 'origin', 'https://ann:s3cret@github.com/shop/cart.git');
  await inMenu('Copy push command', 'Open pull request on github.com');
  await page.keyboard.press('Escape');
  git(code, 'remote', 'set-url', 'origin', bare);
  execFileSync('/bin/sh', ['-c', command], { stdio: 'pipe' });
  expect(git(bare, 'rev-parse', branch)).toBe(git(workdir, 'rev-parse', 'HEAD'));
  await inMenu();
  await page.keyboard.press('Escape');

  git(code, 'remote', 'set-url', 'origin', 'git@gitlab.com:shop/cart.git');
  await inMenu('Open merge request on gitlab.com');
  expect(await opening.getAttribute('href')).toBe(
    `https://gitlab.com/shop/cart/-/merge_requests/new?merge_request%5Bsource_branch%5D=${encodeURIComponent(branch)}`,
  );
  expect(await opening.getAttribute('target')).toBe('_blank');
  expect(await opening.getAttribute('rel')).toBe('noopener noreferrer');
  expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });
});

longBrowserTest(
  'the page reports a folder without git, a folder without changes, and an agent that takes no prompts',
  async () => {
    const plain = await plane.agent('true');
    const { page } = await browser.open(plane);
    await signIn(page, plane);
    await page.goto(`${plane.url}/agents/${plain.id}/changes`);
    await page.getByText('This folder is not a git repository').waitFor(slow);
    expect(await page.getByText(/^git -C/).count()).toBe(0);
    const { id, workdir } = await plane.client.call('createAgent', {
      body: {
        name: 'tidy',
        command: 'sleep 1000',
        worktree_mode: 'create_worktree',
        worktree_repo: repo,
        start: true,
      },
    });
    await page.goto(`${plane.url}/agents/${id}/changes`);
    await page.getByText('No changes yet.').waitFor(slow);
    await writeFile(join(workdir, 'new.ts'), 'one\n');
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByRole('button', { name: 'Comment on line 1', exact: true }).click();
    await page.getByRole('textbox', { name: 'Comment on line 1' }).fill('No.');
    await page.getByRole('button', { name: 'Add comment' }).click();
    await page.getByText('This agent does not speak ACP').waitFor();
    expect(await page.getByRole('button', { name: 'Send to agent' }).isDisabled()).toBe(true);
  },
);

browserTest(
  'a kept worktree is listed with its work, and removed once it is clear what is lost',
  async () => {
    const { id: agent_id, workdir } = await plane.client.call('createAgent', {
      body: { name: 'left', command: 'true', worktree_mode: 'create_worktree', worktree_repo: repo },
    });
    await writeFile(join(workdir, 'notes.md'), 'one\ntwo\n');
    const { page, errors } = await browser.open(plane);
    await signIn(page, plane);
    await page.goto(`${plane.url}/agents/${agent_id}`);
    await page.getByRole('button', { name: 'More' }).last().click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    const said = page.getByRole('dialog');
    // What would be lost is listed before it can be chosen.
    await said.getByRole('listitem').getByText('untracked files').waitFor();
    await said.getByRole('listitem').getByText('notes.md').waitFor();
    expect(await said.getByLabel('Delete the worktree and lose this work').isChecked()).toBe(false);
    await said.getByRole('button', { name: 'Delete agent' }).click();
    await expect.poll(() => said.innerText()).toContain('Its worktree was kept: untracked files');
    await page.getByText('This agent was deleted.').waitFor();
    await page.getByRole('link', { name: 'Show kept worktrees' }).waitFor();
    await page.goto(`${plane.url}/nodes?node=main`);
    await page.getByRole('link', { name: 'Show 1 kept worktree' }).click();

    const row = page.getByRole('row').filter({ hasText: 'left' });
    await row.getByText('untracked files').waitFor();
    await row.getByText('+2').waitFor();
    await row.getByText('shop').waitFor();
    await row.getByRole('link', { name: 'left', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Worktree of left' });
    await dialog.getByRole('listitem').getByText('untracked files').waitFor();
    await dialog.getByText('Everything else in the folder is lost for good.').waitFor();
    await page.goBack();
    await dialog.waitFor({ state: 'detached' });
    expect(existsSync(workdir)).toBe(true);

    await row.getByRole('link', { name: 'Remove the worktree of left' }).click();
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await page.getByText('Removed the worktree of left').waitFor();
    await page.getByText('No worktrees are kept.').waitFor();
    expect(existsSync(workdir)).toBe(false);
    expect(errors).toEqual([]);
  },
);

longBrowserTest('Discard worktree lists what is lost, and deletes the agent with its worktree', async () => {
  const { id: agent_id, workdir } = await plane.client.call('createAgent', {
    body: {
      name: 'unwanted',
      command: 'sleep 1000',
      worktree_mode: 'create_worktree',
      worktree_repo: repo,
      start: true,
    },
  });
  await writeFile(join(workdir, 'cart.ts'), 'line 1\n');
  commit(workdir, { 'kept.ts': 'kept\n' }, 'work');
  await writeFile(join(workdir, 'cart.ts'), 'line 2\n');
  await writeFile(join(workdir, 'scratch.md'), 'idea\n');
  const { page, errors } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents/${agent_id}/changes`);
  const choose = async () => {
    await page.getByRole('button', { name: 'Use changes' }).click();
    await page.getByRole('menuitem', { name: 'Discard worktree' }).click();
  };
  await choose();
  const dialog = page.getByRole('dialog', { name: 'Discard the worktree of unwanted?' });
  const files = dialog.getByRole('group', { name: 'Files with uncommitted changes' });
  await files.waitFor(slow);
  expect((await files.innerText()).split('\n')).toEqual(['cart.ts modified', 'scratch.md untracked']);
  const said = await dialog.innerText();
  for (const part of [
    'It is running, so it and everything it started will be stopped first.',
    'uncommitted changes',
    '1 commit on no remote and no other branch',
    'Commits on its branch stay in the repository. Everything else in the folder is lost for good.',
  ]) {
    expect(said).toContain(part);
  }
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'detached' });
  expect(existsSync(join(workdir, 'scratch.md'))).toBe(true);

  await choose();
  await dialog.getByRole('button', { name: 'Discard worktree' }).click();
  await page.getByText('Discarded the worktree of unwanted').waitFor(slow);
  await page.getByText('was kept: 1 commit on no remote and no other branch').waitFor();
  await expect.poll(() => new URL(page.url()).pathname).toBe('/agents');
  expect(existsSync(workdir)).toBe(false);
  await expect(plane.client.call('getAgent', { params: { agent_id } })).rejects.toThrow('agent not found');
  // The page behind the dialog may read the changes once more while the worktree is removed.
  expect(errors.filter((error) => !error.endsWith('/changes'))).toEqual([]);
});
