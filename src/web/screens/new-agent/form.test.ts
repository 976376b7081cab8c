import { describe, expect, test } from 'vitest';
import { invalid, problems } from '../../../core/problem.ts';
import type { PresetRecord } from '../../api/queries.ts';
import { EMPTY, shapeOf, suggestName, toBody, toCommand } from './form.ts';
import { choicesOf } from './presets.tsx';
import { problemsFrom } from './problems.ts';

const demo = shapeOf({ protocol: 'acp', argv: ['svc', 'demo-agent'] });
const plain = shapeOf({ protocol: 'plain', argv: null });

test('suggests the name of the repository, folder or preset, with the first free number', () => {
  const draft = { ...EMPTY, repo: '/home/ana/code/shop/' };
  expect(suggestName(draft, [])).toBe('shop-1');
  expect(suggestName(draft, ['shop-1', 'shop-2'])).toBe('shop-3');
  expect(suggestName({ ...EMPTY, where: 'folder', workdir: '/w/api' }, [])).toBe('api-1');
  expect(suggestName({ ...EMPTY, where: 'empty' }, [])).toBe('demo-1');
});

test('the request contains only the fields that apply to the choices', () => {
  const draft = { ...EMPTY, repo: ' /code/shop ', ref: ' main ', prompt: 'Go', env: 'A=1\n\nB=x=y' };
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
    { ...draft, preset: 'plain', where: 'folder', workdir: '/w', command: 'make', restart: true },
    plain,
    'x',
  );
  expect(folder).toMatchObject({
    body: {
      preset: 'plain',
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
  expect([demo, plain]).toEqual([
    { acp: true, needs_command: false },
    { acp: false, needs_command: true },
  ]);
});

test('a command for one kind of preset is not sent to one of another kind', () => {
  const draft = { ...EMPTY, where: 'empty', command: 'npm test', own_command: 'my-agent' } as const;
  const commands = [plain, demo].map((shape) => [
    toBody({ ...draft, preset: 'x' }, shape, 'x'),
    toCommand({ ...draft, preset: 'x' }, shape, 'x'),
  ]);
  expect(commands).toEqual([
    [{ body: expect.objectContaining({ command: 'npm test' }) }, expect.stringContaining("'npm test'")],
    [{ body: expect.objectContaining({ command: 'my-agent' }) }, expect.stringContaining(' my-agent ')],
  ]);
});

test('a form that is not complete names the field', () => {
  expect(toBody({ ...EMPTY, repo: '/code', env: 'A=1\noops' }, demo, 'x')).toEqual({
    problems: { env: 'Line 2 is not NAME=value' },
  });
  expect(toBody(EMPTY, demo, 'x')).toEqual({ problems: { repo: 'Choose a repository, or enter its path.' } });
  expect(toBody({ ...EMPTY, where: 'folder' }, demo, 'x')).toHaveProperty('problems.workdir');
  expect(toBody({ ...EMPTY, where: 'empty' }, demo, 'x')).toHaveProperty('body');
});

test('the command does the same as the form, without values of variables', () => {
  const draft = { ...EMPTY, repo: '/code/my shop', ref: 'main', prompt: "Don't", env: 'KEY=secret\nX=1' };
  expect(toCommand(draft, demo, 'shop-1')).toBe(
    "svc agents create shop-1 --preset demo --repo '/code/my shop' --ref main --env KEY --env X --prompt 'Don'\\''t' --start",
  );
  const other = { ...EMPTY, preset: 'plain', where: 'folder', workdir: '/w', command: 'make -j2' } as const;
  expect(
    toCommand(
      { ...other, node_id: 'box', permission_mode: 'agent', restart: true, stdin: true },
      plain,
      'a b',
    ),
  ).toBe(
    "svc agents create 'a b' --preset plain --command 'make -j2' --workdir /w --node box --permission-mode agent --restart on_failure --stdin --start",
  );
  expect(toCommand({ ...EMPTY, where: 'empty', repo: '/code' }, demo, 'x')).toBe(
    'svc agents create x --preset demo --start',
  );
});

test('the command has a placeholder for a repository or folder that is not known yet', () => {
  expect(toCommand({ ...EMPTY, ref: 'main' }, demo, 'x')).toBe(
    'svc agents create x --preset demo --repo REPOSITORY --ref main --start',
  );
  expect(toCommand({ ...EMPTY, where: 'folder' }, demo, 'x')).toBe(
    'svc agents create x --preset demo --workdir FOLDER --start',
  );
});

describe('an error of the service', () => {
  const shown = (path: string) => ({ path, name: path.split('/').at(-1)! });
  const known = ['/code/shop', '/code/billing-api', '/srv/a'].map(shown);
  const paths = { ...EMPTY, repo: '/code/', ref: 'v9', workdir: '/w' };
  const show = (error: Error, more = {}, repositories = known) =>
    problemsFrom(error, { ...paths, ...more }, repositories);
  const refused = (message: string) => invalid(message, 'git_refused');
  const no_repository = refused('fatal: not a git repository (or any of the parent directories): .git');

  test('names the repositories to choose instead of their parent folder', () => {
    expect(show(no_repository)).toEqual({
      repo: '/code is not a git repository. Choose shop or billing-api below it.',
    });
    expect(show(no_repository, { repo: '/srv' }).repo).toBe(
      '/srv is not a git repository. Choose a below it.',
    );
    expect(show(no_repository, { repo: '/srv/b' }).repo).toBe(
      '/srv/b is not a git repository. Choose one from the list.',
    );
    expect(show(no_repository, {}, []).repo).toBe('/code is not a git repository.');
    const many = ['a', 'b', 'c\u202e', 'd'].map((name) => shown(`/code/${name}`));
    expect(show(no_repository, {}, many).repo).toBe(
      '/code is not a git repository. Choose a, b, c⟦U+202E⟧ or another one below it.',
    );
  });

  test('is shown at the field that it is about, in the terms of the form', () => {
    const cases: [Error, object][] = [
      [problems.repoNotSafe(), { repo: '/code is not in an allowed folder.' }],
      [problems.workdirNotSafe(), { workdir: '/w is not in an allowed folder.' }],
      [problems.workdirMissing(), { workdir: '/w does not exist on this node.' }],
      [invalid('worktree_repo does not exist'), { repo: '/code does not exist on this node.' }],
      [invalid('worktree_repo is not a directory'), { repo: '/code is not a folder.' }],
      [
        invalid('worktree_repo must be absolute'),
        { repo: '/code is not an absolute path. Begin with a slash.' },
      ],
      [
        refused("worktree_repo has no commits: fatal: ambiguous argument 'HEAD'"),
        { repo: '/code has no commits yet. Commit something first.' },
      ],
      [
        refused('fatal: detected dubious ownership'),
        { repo: 'git cannot use /code: detected dubious ownership' },
      ],
      [
        refused('worktree_ref is not a commit: fatal: Needed a single revision'),
        { ref: 'v9 is not a commit, branch or tag of this repository.' },
      ],
      [invalid('unknown preset: x'), { preset: 'unknown preset: x' }],
    ];
    for (const [error, expected] of cases) expect(show(error)).toEqual(expected);
    expect(show(problems.workdirRequired())).toHaveProperty('workdir');
    expect(show(problems.commandRequired())).toHaveProperty('command');
    expect(show(problems.nodeNotFound())).toHaveProperty('node_id');
    expect(show(problems.diskSpace())).toHaveProperty('form');
    expect(show(refused('fatal: odd'), { where: 'folder' })).toEqual({ form: 'fatal: odd' });
  });
});

test('offers installed presets, the chosen one, and the installation of the others', () => {
  const preset = (id: string, fields: Partial<PresetRecord> = {}) =>
    ({ id, name: id, argv: ['x'], installed: true, signed_in: 'yes', ...fields }) as PresetRecord;
  const presets = [
    preset('plain', { argv: null, installed: null }),
    preset('claude', { signed_in: 'no' }),
    preset('codex', { installed: false }),
  ];
  const labels = (chosen: string, of = presets) => choicesOf(of, chosen, 'Assumed').map(({ label }) => label);
  expect(labels('claude')).toEqual(['claude (not signed in)', 'plain', 'Install…']);
  expect(labels('codex')).toEqual(['claude (not signed in)', 'codex (not installed)', 'plain', 'Install…']);
  expect(labels('gone', [preset('demo')])).toEqual(['Assumed', 'demo']);
  expect(labels('demo', [])).toEqual(['Assumed']);
});
