/** The reference of all routes, from the route table. */
import { isPublic, isRootOnly, isUnlimitedOnly, type Route } from '../../src/api/route.ts';
import { operationIds, routes } from '../../src/api/routes.ts';
import { scopeOf } from '../../src/core/policy.ts';
import { code, page, table } from './page.ts';

const LEGEND = `The schemas of requests and responses are in \`openapi.json\`, and on your service at \`/docs\` and \`/api/openapi.json\`. Errors are listed
in [errors](errors.md), and streams in [events](events.md).

- **Role**: who may call the route. *Anyone* needs no token; *user* is everyone with a token, for their own resources; *root* is root only.
- **Scope**: what an API token needs. *Not limited* means that tokens which are limited to agents or teams are rejected.

Three routes are not part of the API: \`GET /healthz\` and \`GET /readyz\` answer without a token, and \`GET /metrics\` needs root's token or the
scope \`metrics\` ([metrics](metrics.md)).`;

export function apiPage(): string {
  const groups = Map.groupBy(operationIds, (id) => routes[id].tag);
  const parts = [...groups].flatMap(([tag, ids]) => [
    `## ${tag}`,
    table(
      ['Route', 'Role', 'Scope', 'Summary'],
      ids.map((id) => row(routes[id])),
    ),
  ]);
  return page(
    'API',
    'This page lists all routes of the HTTP API.',
    ['src/api/routes.ts'],
    [LEGEND, ...parts],
  );
}

function row(route: Route): string[] {
  const role = isPublic(route) ? 'anyone' : isRootOnly(route) ? 'root' : 'user';
  const scope = scopeOf(route.action);
  const needs = [
    ...(scope === null ? [] : [code(scope)]),
    ...(isUnlimitedOnly(route) ? ['not limited'] : []),
  ];
  return [code(`${route.method} ${route.path}`), role, needs.join(', '), route.summary];
}
