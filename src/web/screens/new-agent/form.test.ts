import { expect, test } from 'vitest';
import type { PresetRecord } from '../../api/queries.ts';
import { derivedFolder, EMPTY, needsCommand, problemsFrom, suggestName, toBody } from './form.ts';

const demo = { id: 'demo', protocol: 'acp', argv: ['svc', 'demo-agent'] } as PresetRecord;
const plain = { id: 'plain', protocol: 'plain', argv: null } as PresetRecord;

test('suggests the name of the repository, folder or preset, with the first free number', () => {
  const draft = { ...EMPTY, repo: '/home/ana/code/shop/' };
  expect(suggestName(draft, [])).toBe('shop-1');
  expect(suggestName(draft, ['shop-1', 'shop-2'])).toBe('shop-3');
  expect(suggestName({ ...EMPTY, where: 'folder', workdir: '/w/api' }, [])).toBe('api-1');
  expect(suggestName({ ...EMPTY, where: 'empty' }, [])).toBe('demo-1');
});

test('shows the folder before it is created', () => {
  expect(derivedFolder(EMPTY, '/data/worktrees', 'shop-1')).toBe('/data/worktrees/shop-1-…');
  expect(derivedFolder(EMPTY, null, 'shop-1')).toBe(null);
  expect(derivedFolder({ ...EMPTY, workdir: '/w/x' }, '/data', 'shop-1')).toBe('/w/x');
  expect(derivedFolder({ ...EMPTY, where: 'folder', workdir: '/w/x' }, '/data', 'shop-1')).toBe('/w/x');
});

test('the request contains only the fields that apply to the choices', () => {
  const draft = { ...EMPTY, repo: '/code/shop', ref: ' main ', prompt: 'Go', env: 'A=1\n\nB=x=y' };
  expect(toBody(draft, demo, 'shop-1')).toEqual({
    body: {
      name: 'shop-1',
      preset: 'demo',
      permission_mode: 'ask',
      command: null,
      node_id: 'main',
      worktree_mode: 'create_worktree',
      worktree_repo: '/code/shop',
      worktree_ref: 'main',
      workdir: null,
      prompt: 'Go',
      env: { A: '1', B: 'x=y' },
      restart_policy: 'never',
      stdin: false,
    },
  });
  const folder = toBody(
    { ...draft, where: 'folder', workdir: '/w', command: 'make', restart: true },
    plain,
    'x',
  );
  expect(folder).toMatchObject({
    body: {
      worktree_mode: 'use_existing',
      worktree_repo: null,
      worktree_ref: null,
      workdir: '/w',
      prompt: null,
    },
  });
  expect(toBody({ ...draft, permission_mode: 'agent' }, demo, 'x')).toMatchObject({
    body: { permission_mode: 'agent' },
  });
  expect(toBody({ ...draft, env: 'A=1\noops' }, demo, 'x')).toEqual({
    problems: { env: 'Line 2 is not NAME=value' },
  });
  expect([needsCommand(demo), needsCommand(plain)]).toEqual([false, true]);
});

test('an error is shown at the field that it is about', () => {
  expect(problemsFrom('workdir is required')).toEqual({ workdir: 'Enter a folder' });
  expect(problemsFrom('worktree_repo must be within allowed safe paths')).toEqual({
    repo: 'This repository must be in an allowed folder',
  });
  expect(problemsFrom('command is required')).toHaveProperty('command');
  expect(problemsFrom('agent node not found')).toHaveProperty('node_id');
  expect(problemsFrom('not enough disk space')).toHaveProperty('form');
});
