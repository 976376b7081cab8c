/** The reference of all events, from their table and the routes of the streams. */
import type { Route } from '../../src/api/route.ts';
import { operationIds, routes } from '../../src/api/routes.ts';
import {
  errorEvents,
  eventFields,
  failureReasons,
  streamErrors,
  warningEvents,
} from '../../src/core/event-shapes.ts';
import { code, page, table } from './page.ts';

const AGENT_LOG = `## Events of an agent

Every event has \`type\`, \`agent_id\`, \`session_id\` (null if it belongs to no session), \`seq\` (its number in the agent's log, from 1)
and \`ts\` (Unix seconds). In the tables below, \`?\` marks a field that can be absent.`;

const STREAMS = `## Streams

All streams are server-sent events. \`id\` is the position, \`event\` the type, and \`data\` one line of JSON that repeats the type. To continue, send the
last \`id\` as \`Last-Event-ID\` or \`after\`. A \`heartbeat\` (\`{"type":"heartbeat","ts":…}\`) every 30 seconds repeats the last position. The streams of
changes send \`{type, ts, record}\`: \`record\` is the record after the change, with \`deleted: true\` if it was deleted. The \`activity\` and
\`mail\` frames of \`GET /api/events\` have a list instead. A revoked token ends a stream at once, and so does leaving
the team of its agent, run or task. Any other loss of access ends it within 10 seconds.`;

export function eventsPage(): string {
  const types = Object.entries(eventFields).flatMap(([type, fields]) => [
    `### ${type}`,
    meanings(['Field', 'Meaning'], fields),
  ]);
  const streams = operationIds
    .map((id): Route => routes[id])
    .filter(({ raw }) => raw === 'sse')
    .map(({ path, summary, description = '' }) => [code(`GET ${path}`), `${summary}. ${description}`]);
  return page(
    'Events',
    'This page lists the events of agents and the streams that deliver them.',
    ['src/core/event-shapes.ts'],
    [
      STREAMS,
      table(['Stream', 'Content'], streams),
      AGENT_LOG,
      ...types,
      '## Error codes',
      'Stored in the log of an agent:',
      meanings(['Code', 'Meaning'], { ...errorEvents }),
      'Warnings of a node about a session:',
      meanings(['Code', 'Meaning'], warningEvents),
      'Reasons why a session failed. They are the `reason` of a `status` event and, if there is a message, the code of an `error` event:',
      meanings(['Code', 'Meaning'], failureReasons),
      'Sent on one connection and not stored:',
      meanings(['Code', 'Meaning'], streamErrors),
    ],
  );
}

function meanings(head: [string, string], entries: Record<string, string>): string {
  return table(
    head,
    Object.entries(entries).map(([name, meaning]) => [code(name), meaning]),
  );
}
