/** HTTP handlers for an agent's stored log: pages of events, raw bytes with ranges, and search. */
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import parseRange from 'range-parser';
import { limits } from '../../../base/limits.ts';
import { cursorOf, readCursor } from '../../../core/page.ts';
import { problems } from '../../../core/problem.ts';
import type { EventLog } from '../../../events/log.ts';
import type { Call, Handlers } from '../../../server/call.ts';
import { asCappedList, asList } from '../../../server/list.ts';
import type { Agents } from '../service.ts';

export function logHandlers(deps: {
  agents: Agents;
  log: EventLog;
}): Pick<Handlers, 'getLog' | 'getOutput' | 'searchLog'> {
  const { agents, log } = deps;
  return {
    getLog: async (call) => {
      const { caller, params, query } = call;
      await agents.authorizeRead(caller, params.agent_id);
      const limit = query.limit ?? limits.page_items_max;
      const backwards = query.before !== undefined && query.after === undefined;
      const [seq] = readCursor(query.cursor, 'number') ?? [];
      // A cursor continues in the direction of the query that it came with.
      const range = backwards
        ? { before: seq ?? query.before }
        : { after: seq ?? query.after, before: query.before };
      const { events, has_more } = await log.page(params.agent_id, { ...range, limit, types: query.type });
      const end = backwards ? events[0] : events.at(-1);
      const next = has_more && end !== undefined ? { next_cursor: cursorOf([end.seq]) } : {};
      return asCappedList(call, { items: events, ...next });
    },
    searchLog: async ({ caller, params, query, signal }) => {
      await agents.authorizeRead(caller, params.agent_id);
      const limit = query.limit ?? limits.page_items_default;
      const [before] = readCursor(query.cursor, 'number') ?? [];
      const request = { text: query.q, limit, before, user_id: caller.user_id, signal };
      const { hits: items, next } = await log.search(params.agent_id, request).catch((error) => {
        // A client that has disconnected does not see it.
        throw signal.aborted ? problems.draining() : error;
      });
      return asList(query, { items, ...(next !== null && { next_cursor: cursorOf([next]) }) });
    },
    getOutput: async (call) => {
      const { caller, params, query } = call;
      const agent = await agents.get(caller, params.agent_id);
      const session_id = query.session_id ?? agent.session_id;
      if (session_id === null) return sendBytes(call, 0, 0, async function* () {});
      const output = await log.output(agent.id, session_id, query.stream ?? null);
      await sendBytes(call, output.size_bytes, output.lost_bytes, (from, to) => output.read(from, to));
    },
  };
}

async function sendBytes(
  call: Call<'getOutput'>,
  size: number,
  lost: number,
  read: (from: number, to: number) => AsyncIterable<Buffer>,
): Promise<undefined> {
  const { tail } = call.query;
  const start = tail === undefined ? 0 : Math.max(0, size - tail);
  const range = call.headers.range === undefined ? -2 : parseRange(size - start, call.headers.range);
  const response = call.hijack();
  response.setHeader('accept-ranges', 'bytes');
  // The number of bytes that retention has deleted.
  response.setHeader('x-lost-bytes', String(lost));
  if (range === -1) return refuseRange(response, size - start);
  // Malformed and multiple ranges return the whole content, as RFC 9110 allows.
  const one = range !== -2 && range.type === 'bytes' && range.length === 1 ? range[0]! : null;
  const [from, to] = one ? [start + one.start, start + one.end + 1] : [start, size];
  if (one) response.setHeader('content-range', `bytes ${one.start}-${one.end}/${size - start}`);
  response.statusCode = one ? 206 : 200;
  response.setHeader('content-type', 'application/octet-stream');
  response.setHeader('content-length', String(to - from));
  if (call.method === 'HEAD' || to === from) {
    response.end();
    return;
  }
  await pipeline(Readable.from(exactly(to - from, read(from, to)), { objectMode: false }), response, {
    signal: call.signal,
  }).catch((error) => {
    if (!call.signal.aborted) throw error;
  });
}

/** Throws if promised bytes are missing. That ends the connection; otherwise, the client would wait for them. */
async function* exactly(size: number, parts: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let left = size;
  for await (const part of parts) {
    left -= part.length;
    yield part;
  }
  if (left !== 0) throw new Error(`${left} of ${size} bytes of the output are missing`);
}

function refuseRange(response: ServerResponse, size: number): undefined {
  const problem = problems.rangeNotSatisfiable();
  response.statusCode = 416;
  response.setHeader('content-range', `bytes */${size}`);
  response.setHeader('content-type', 'application/json; charset=utf-8');
  response.setHeader('x-error-code', problem.code);
  response.end(JSON.stringify({ error: problem.message }));
}
