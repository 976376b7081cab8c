/** Checks of the documentation: no link is broken, and the index and the reference are complete. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { openapi } from '../../src/api/openapi.ts';
import { isConfigKey } from '../../src/core/config.ts';
import { errorEvents, failureReasons, streamErrors, warningEvents } from '../../src/core/event-shapes.ts';
import { documentedProblems } from '../../src/core/other-problems.ts';
import { isForTests, root, sourceFiles } from './source.ts';

const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: root,
});
const pages = listed
  .toString()
  .split('\0')
  .filter((path) => path !== '' && existsSync(join(root, path)));
const read = (page: string) => readFileSync(join(root, page), 'utf8');
const withoutCode = (text: string) => text.replaceAll(/^```.*?^```$/gms, '').replaceAll(/`[^`\n]*`/g, '');

/** The anchors of a page's headings, as GitHub makes them. */
function anchors(page: string): Set<string> {
  const headings = read(page)
    .replaceAll(/^```.*?^```$/gms, '')
    .matchAll(/^#+ (.+)$/gm);
  const plain = [...headings].map(([, title]) =>
    title!.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase(),
  );
  return new Set(plain.map((title) => title.replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-')));
}

function linksOf(page: string): { target: string; path: string; anchor: string }[] {
  return [...withoutCode(read(page)).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target]) => {
    if (/^[a-z]+:/.test(target!)) return [];
    const [path = '', anchor = ''] = target!.split('#');
    return [{ target: target!, path: path === '' ? page : join(dirname(page), path), anchor }];
  });
}

test('every link within the documentation points to an existing file and heading', () => {
  const broken = pages.flatMap((page) =>
    linksOf(page)
      .filter(({ path, anchor }) => {
        if (!existsSync(join(root, path))) return true;
        return anchor !== '' && path.endsWith('.md') && !anchors(path).has(anchor);
      })
      .map(({ target }) => `${page}: ${target}`),
  );
  expect(broken).toEqual([]);
});

test('the index lists every page of the documentation', () => {
  const index = new Set(linksOf('docs/README.md').map(({ path }) => path));
  const missing = pages.filter(
    (page) => page.startsWith('docs/') && page !== 'docs/README.md' && !index.has(page),
  );
  expect(missing.map((page) => relative('docs', page))).toEqual([]);
});

test('the README begins with the commands to start and to test, and has at most 150 lines', () => {
  const lines = read('README.md').split('\n');
  expect(lines.slice(0, 4)).toEqual([
    '```',
    expect.stringMatching(/^npm ci && npm start\b/),
    expect.stringMatching(/^npm ci && npm test\b/),
    '```',
  ]);
  expect(lines.length).toBeLessThanOrEqual(150);
});

test('the reference of teams has every field of a definition', () => {
  const { schemas } = openapi().components as { schemas: Record<string, { properties: object }> };
  const fields = ['TeamSpec', 'Member', 'MemberAgent', 'StepSpec'].flatMap((name) =>
    Object.keys(schemas[name]!.properties),
  );
  expect(fields.length).toBeGreaterThan(20);
  const page = read('docs/reference/teams.md');
  expect(fields.filter((field) => !page.includes(`\`${field}\``))).toEqual([]);
});

test('the reference of limits names the setting of each limit that is a default', () => {
  const rows = [...read('docs/reference/limits.md').matchAll(/^\| `(\w+)` .* Default of (.*)/gm)];
  const named = new Map(
    rows.map(([, limit, text]) => [limit!, [...text!.matchAll(/`([\w.]+)`/g)].map(([, key]) => key!)]),
  );
  expect([...named.values()].flat().filter((key) => !isConfigKey(key))).toEqual([]);
  const declared = [...read('src/core/config.ts').matchAll(/'([\w.]+)': integer\(\s*limits\.(\w+),/g)];
  expect(declared.length).toBeGreaterThan(5);
  expect(
    declared.filter(([, key, limit]) => !named.get(limit!)?.includes(key!)).map(([, key]) => key),
  ).toEqual([]);
});

/** Where no error is the response to a client: startup, the CLI, tools, and the web UI. */
const NO_API = /^src\/(main|cli|client|tools|web)\/|\/commands\//;
/** Errors between nodes and planes, and before the service answers requests. */
const INTERNAL_CODES = new Set(
  (
    'agent_id_invalid invalid_launch stdin_gap not_attached stale_link joining_not_possible ' +
    'invalid_client_address database_unreachable database_in_use'
  ).split(' '),
);
const TEXT = /`[^`]*`|'[^']*'|"[^"]*"/.source;
const RAISED = new RegExp(
  `(?:new Problem\\(\\s*(?:'\\w+'|\\w+),|storeProblem\\()\\s*'(\\w+)',\\s*(${TEXT}|)` +
    `|\\binvalid\\(\\s*(${TEXT}|[\\w.!]+)(?:\\s*\\+\\s*${TEXT})?,\\s*'(\\w+)',?\\s*\\)`,
  'g',
);

test('the error reference lists every error of the API, with its message', () => {
  const listed = Map.groupBy(
    Object.values(documentedProblems).map((make) => make()),
    ({ code }) => code,
  );
  const sources = sourceFiles('src').filter(({ path }) => !isForTests(path) && !NO_API.test(path));
  const raised = sources.flatMap(({ path, text }) =>
    [...text.matchAll(RAISED)].map(([, code, message, reason, code_of_invalid]) => ({
      path,
      code: (code ?? code_of_invalid)!,
      message: (message ?? reason)!,
    })),
  );
  expect(raised.length).toBeGreaterThan(50);
  const missing = raised.filter(({ code, message }) => {
    if (INTERNAL_CODES.has(code)) return false;
    return !listed.get(code)?.some((problem) => isSameText(message, problem.message));
  });
  expect(missing).toEqual([]);
});

/** Whether a literal in the source has this text, where each `${…}` may be anything. Anything else in the source may be any text. */
function isSameText(source: string, text: string): boolean {
  if (!/^[`'"]/.test(source)) return true;
  let at = 0;
  const parts = source.slice(1, -1).split(/\$\{(?:[^{}]|\{[^{}]*\})*\}/);
  return parts.every((part, index) => {
    const found = text.indexOf(part, at);
    at = found + part.length;
    return index === 0 ? found === 0 : found !== -1;
  });
}

test('the event reference lists exactly the codes of error events that the code uses', () => {
  const known: string[] = [errorEvents, warningEvents, failureReasons, streamErrors].flatMap(Object.keys);
  const sources = sourceFiles('src').filter(
    ({ path }) => !isForTests(path) && !path.startsWith('src/web/') && !path.startsWith('src/tools/'),
  );
  const raised =
    /\b(?:error|logError|waits|fail)\(\s*(?:(?:tx|[a-z]\w*\.\w+|\w*_id|id|state|transaction),\s*)*'([a-z]+(?:_[a-z]+)+)'/g;
  const codes = sources.flatMap(({ text }) => [...text.matchAll(raised)].map(([, code]) => code!));
  expect(codes.length).toBeGreaterThan(15);
  expect(codes.filter((code) => !known.includes(code))).toEqual([]);
  const unused = known.filter((code) => !sources.some(({ path, text }) => isRaisedIn(path, text, code)));
  expect(unused).toEqual([]);
});

/** Whether the file names the code, apart from the reference itself. */
function isRaisedIn(path: string, text: string, code: string): boolean {
  return path !== 'src/core/event-shapes.ts' && text.includes(`'${code}'`);
}
