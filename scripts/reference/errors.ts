/** The reference of all errors of the API, from the table of problems. */
import { INTERNAL_ERROR, statusOf } from '../../src/api/status.ts';
import { documentedProblems } from '../../src/core/other-problems.ts';
import { code, page, table } from './page.ts';

const FORM = `An error response is \`{"error": "<message>"}\`. Its code is in the header \`X-Error-Code\`, and the id of the request in \`X-Request-Id\`. Codes
and fixed messages are part of the API. \`<…>\` is a placeholder for a value. The CLI exits with 4 for 401, with 5 if the node of an agent does not
answer, and with 1 for other errors.`;

/** Its handler sets the status, because no kind of error has it. */
const RANGE_STATUS = 416;

export function errorsPage(): string {
  const all = Object.values(documentedProblems).map((make) => make());
  const range = documentedProblems.rangeNotSatisfiable().code;
  const rows = [
    ...all.map(({ kind, code: name, message }) => ({
      status: name === range ? RANGE_STATUS : statusOf[kind],
      name,
      message,
    })),
    { status: INTERNAL_ERROR.status, name: INTERNAL_ERROR.code, message: INTERNAL_ERROR.message },
  ];
  const unique = [...new Map(rows.map((row) => [JSON.stringify(row), row])).values()];
  const parts = [...Map.groupBy(unique, ({ status }) => status)]
    .sort(([a], [b]) => a - b)
    .flatMap(([status, group]) => [
      `## ${status}`,
      table(
        ['Code', 'Message'],
        group.sort(byName).map(({ name, message }) => [code(name), code(message)]),
      ),
    ]);
  return page(
    'Errors',
    'This page lists the errors of the HTTP API, and of `svc actor`.',
    ['src/core/problem.ts', 'src/core/other-problems.ts'],
    [FORM, ...parts],
  );
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : 1;
}
