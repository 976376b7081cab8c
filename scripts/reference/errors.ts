/** The reference of all errors of the API, from the table of problems. */
import { INTERNAL_ERROR, statusOf } from '../../src/api/status.ts';
import {
  agentProcessesSurvived,
  invalid,
  lacksScope,
  nodeIdMismatch,
  notAllowedAs,
  type Problem,
  problems,
  unknownField,
  worktreeRootNotSafe,
} from '../../src/core/problem.ts';
import { code, page, table } from './page.ts';

const FORM = `An error response is \`{"error": "<message>"}\`. Its code is in the header \`X-Error-Code\`, and the id of the request in \`X-Request-Id\`. Codes
and fixed messages are part of the API. \`<…>\` is a placeholder for a value. The CLI exits with 4 for 401, with 5 if the node of an agent does not
answer, and with 1 for other errors.`;

/** Its handler sets the status, because no kind of error has it. */
const RANGE_STATUS = 416;

/** Errors whose message contains a value. */
const variable: Problem[] = [
  invalid('<field> <what is wrong>'),
  unknownField('<name>'),
  lacksScope('<scope>'),
  notAllowedAs('<actor>'),
  worktreeRootNotSafe('<path>', '<node>'),
  nodeIdMismatch('<a>', '<b>'),
];

export function errorsPage(): string {
  const all = [...Object.values(problems).map((make) => make()), ...variable];
  const range = problems.rangeNotSatisfiable().code;
  const survived = agentProcessesSurvived([]);
  const rows = [
    ...all.map(({ kind, code: name, message }) => ({
      status: name === range ? RANGE_STATUS : statusOf[kind],
      name,
      message,
    })),
    { status: statusOf[survived.kind], name: survived.code, message: `${survived.message}<pids>` },
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
    'This page lists the errors of the HTTP API with a fixed message. The messages of other errors describe what is wrong with a request or with the machine.',
    'src/core/problem.ts',
    [FORM, ...parts],
  );
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : 1;
}
