/**
 * Agents that send malformed ACP to a real plane, while a user prompts them, answers their requests and cancels their turns. The
 * log must be complete, the stored state of the conversation must match it, and the agent can always be stopped.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createParser } from 'eventsource-parser';
import type { EventRecord } from '../../core/event.ts';
import { Problem } from '../../core/problem.ts';
import { DATABASE_FILE } from '../../main/data-dir.ts';
import { openSqliteReader } from '../../store/sqlite.ts';
import type { TestPlane } from '../plane.ts';
import { expectSameState } from '../refold.ts';
import { LAST_METHOD } from './acp-frames.ts';
import { type EntryPoint, Finding } from './entry-point.ts';
import { Rng } from './rng.ts';
import { Watch } from './watch.ts';

const AGENTS = 2;
const LINES = 400;
const PROMPTS = 5;
const POLL_MS = 25;
const REPLY_MS = 120_000;
const CHILD = fileURLToPath(new URL('./acp-child.ts', import.meta.url));

export async function openAcpFuzz(plane: TestPlane): Promise<EntryPoint> {
  const watch = new Watch(plane, () => plane.client.call('getMe'));
  const batch = async (seed: number) => {
    try {
      await Promise.all(Array.from({ length: AGENTS }, (_, n) => converse(plane, seed * AGENTS + n)));
      await watch.check();
    } catch (error) {
      throw new Finding('acp', seed, plane.isRunning ? String((error as Error).stack) : 'the program exited');
    }
    return AGENTS * LINES;
  };
  return { name: 'acp', batch, close: async () => {} };
}

async function converse(plane: TestPlane, seed: number): Promise<void> {
  const { client } = plane;
  const argv = [process.execPath, CHILD, String(seed), String(LINES)];
  const { id } = await plane.agent(argv, { protocol: 'acp', prompt: 'one', name: `fuzz ${seed}` });
  const params = { agent_id: id };
  const rng = new Rng(~seed);
  const until = Date.now() + REPLY_MS;
  for (let prompts = 1; ; ) {
    if (prompts < PROMPTS && rng.chance(0.3)) {
      await ignoreRejection(client.call('promptAgent', { params, body: { text: `prompt ${++prompts}` } }));
    }
    await answerOne(plane, id, rng);
    if (rng.chance(0.05)) await ignoreRejection(client.call('cancelTurn', { params }));
    if (rng.chance(0.1))
      await ignoreRejection(
        client.call('setAgentConfig', { params, body: { mode_id: rng.pick(['ask', 'auto', '__proto__']) } }),
      );
    if (await hasReplied(plane, id)) break;
    if (Date.now() > until)
      throw new Error(`agent ${seed} did not send all its lines within ${REPLY_MS / 1000} s`);
    await sleep(POLL_MS);
  }
  const stopped = await client.call('stopAgent', { params, body: { grace_seconds: 0 } });
  if (stopped.status !== 'cancelled') throw new Error(`a stopped agent has the status ${stopped.status}`);
  await expectLogMatchesRows(plane, id);
  await client.call('deleteAgent', { params });
}

/** Answers one of the agent's pending requests, if there is one. */
async function answerOne({ client }: TestPlane, agent_id: string, rng: Rng): Promise<void> {
  const reviews = await client.call('listReviews', { query: { agent_id, status: 'pending', limit: 5 } });
  const [review] = 'items' in reviews ? reviews.items : reviews;
  if (!review) return answerElicitation(client, agent_id, rng);
  const option_id = review.options[0]?.option_id ?? 'none';
  const body = rng.pick([
    { decision: 'allow' as const },
    { decision: 'deny' as const },
    { option_id },
    { outcome: 'cancelled' as const },
  ]);
  await ignoreRejection(client.call('respondReview', { params: { review_id: review.id }, body }));
}

async function answerElicitation(client: TestPlane['client'], agent_id: string, rng: Rng): Promise<void> {
  const query = { agent_id, status: 'pending' as const, limit: 5 };
  const found = await client.call('listElicitations', { query });
  const [elicitation] = 'items' in found ? found.items : found;
  if (!elicitation) return;
  const { id: elicitation_id, form } = elicitation;
  const content = Object.fromEntries((form?.fields ?? []).map((field) => [field.name, field.default ?? 'x']));
  const body = rng.pick([
    { action: 'accept' as const, ...(form && { content }) },
    { action: 'decline' as const },
    { action: 'cancel' as const },
  ]);
  await ignoreRejection(client.call('respondElicitation', { params: { elicitation_id }, body }));
}

/** Ignores a rejection by the service. */
async function ignoreRejection(call: Promise<unknown>): Promise<void> {
  await call.catch((error: unknown) => {
    if (!(error instanceof Problem)) throw error;
  });
}

async function hasReplied({ client }: TestPlane, agent_id: string): Promise<boolean> {
  const { last_seq } = await client.call('getAgent', { params: { agent_id } });
  const after = Math.max(0, last_seq - 150);
  for await (const { method } of client.all('getLog', { params: { agent_id }, query: { after, limit: 150 } }))
    if (method === LAST_METHOD) return true;
  return false;
}

/** Compares the whole log, with the text of every frame, with the stored state. */
async function expectLogMatchesRows(plane: TestPlane, agent_id: string): Promise<void> {
  const { last_seq } = await plane.get(agent_id);
  const log: EventRecord[] = [];
  const texts = new Map<EventRecord, string>();
  const parser = createParser({
    onEvent: ({ data }) => {
      const event = JSON.parse(data) as EventRecord;
      if ((event.type as string) === 'heartbeat') return;
      if (event.seq !== log.length + 1) throw new Error(`event ${event.seq} follows event ${log.length}`);
      log.push(event);
      texts.set(event, data.slice(data.indexOf('"payload":') + 10, -1));
    },
  });
  const stop = new AbortController();
  const response = await plane.client.open('followAgent', { params: { agent_id }, signal: stop.signal });
  const decoder = new TextDecoder();
  for await (const part of response.body!) {
    parser.feed(decoder.decode(part, { stream: true }));
    if (log.length >= last_seq) break;
  }
  stop.abort();
  const reader = openSqliteReader(join(plane.data_dir, DATABASE_FILE));
  try {
    const sessions = new Set(
      log.flatMap(({ type, session_id }) => (type === 'acp_event' ? [session_id!] : [])),
    );
    for (const session_id of sessions)
      await reader.read((rows) => expectSameState(rows, log, session_id, (event) => texts.get(event)!));
  } finally {
    await reader.close();
  }
}
