/** Limits on the size of files and functions, with the places that still exceed them. */
import { expect, test } from 'vitest';
import { sizeProblems } from './sizes.ts';
import { isForTests, sourceFiles } from './source.ts';

/** Places that still have to be split, and tables of data. Remove a line here when you have split the place. */
const known = [
  'src/client/client.ts: follow',
  'src/features/agents/contract.ts',
  'src/features/settings/service.ts: openSettings',
  'src/web/screens/tasks/composer.tsx: Composer',
  'src/web/screens/tasks/conversation.tsx: Conversation',
  'src/web/screens/tasks/tasks.tsx: Tasks',
  'src/web/screens/tasks/tasks.tsx: TeamTasks',
  'src/web/screens/teams/editor.tsx: Editor',
  'src/web/screens/teams/form.tsx: TeamForm',
  'src/web/screens/teams/member-form.tsx: MemberForm',
  'src/web/screens/teams/start-run.tsx: StartRun',
  'src/web/screens/teams/step-form.tsx: StepForm',
];

const shipped = sourceFiles('src').filter(
  (file) => !isForTests(file.path) && !file.text.includes('@generated'),
);
const found = shipped.flatMap((file) => sizeProblems(file.path, file.text));

test('files and functions stay within their sizes', () => {
  const fresh = found.filter(({ where }) => !known.includes(where));
  expect(fresh.map(({ where, text }) => `${where}: ${text}`)).toEqual([]);
});

test('every known place still exceeds a limit', () => {
  const places = new Set(found.map(({ where }) => where));
  expect(known.filter((where) => !places.has(where))).toEqual([]);
});

test('half of all files have at most 120 lines', () => {
  const lines = shipped.map((file) => file.text.split('\n').length - 1).sort((a, b) => a - b);
  expect(lines[Math.floor(lines.length / 2)]).toBeLessThanOrEqual(120);
});

test('long functions, long files and deep nesting are found', () => {
  const lines = (count: number) => 'void 0;\n'.repeat(count);
  expect(sizeProblems('x.ts', `function long() {\n${lines(80)}}\n`)).toEqual([
    { where: 'x.ts: long', text: '82 lines; split the function' },
  ]);
  expect(sizeProblems('x.ts', `const short = () => {\n${lines(78)}};\n`)).toEqual([]);
  expect(sizeProblems('x.ts', lines(501))).toHaveLength(1);
  const nested = 'if (a) { for (;;) { while (b) { try { if (c) d(); } catch {} } } }';
  expect(sizeProblems('x.ts', `const deep = () => { ${nested} };\n`)).toMatchObject([
    { where: 'x.ts: deep' },
  ]);
  expect(
    sizeProblems('x.ts', 'if (a) b(); else if (c) d(); else if (e) f(); else if (g) h(); else if (i) j();\n'),
  ).toEqual([]);
});
