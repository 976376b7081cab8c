/**
 * An oracle for ACP conversations. Folding the log of a session from its beginning must give the stored state, and every
 * request, answer and prompt of the session must be in its row and once in the log.
 */
import assert from 'node:assert/strict';
import { type Message, readMessage } from '../acp/message.ts';
import { type AcpState, initialState } from '../acp/state.ts';
import { foldFrame } from '../acp/v2/fold.ts';
import type { EventRecord } from '../core/event.ts';
import { loadAcpState } from '../features/agents/queries/acp-state.ts';
import { findSession } from '../features/agents/queries/agents.ts';
import { listElicitations } from '../features/elicitations/queries.ts';
import { listReviews } from '../features/reviews/queries.ts';
import type { Reader } from '../store/store.ts';

/** The complete log of an agent. */
export type Log = readonly EventRecord[];

interface RecordedConversation {
  state: AcpState;
  sent: Message[];
}

/** A frame's JSON text. Parsing it can lose information, because a number may be too large for JavaScript. */
type TextOf = (event: EventRecord) => string;
const payloadText: TextOf = (event) => JSON.stringify(event.payload);

/** Folds a session's log. Throws if the log does not contain the whole conversation. */
export function refold(log: Log, session_id: string, textOf = payloadText): RecordedConversation {
  const stdout: Buffer[] = [];
  let state = initialState;
  const sent: Message[] = [];
  for (const event of log) {
    if (event.session_id !== session_id) continue;
    if (event.type === 'output' && event.stream === 'stdout') {
      stdout.push(Buffer.from(event.data as string, event.encoding === 'base64' ? 'base64' : 'utf8'));
    }
    if (event.type !== 'acp_event') continue;
    const direction = event.direction as 'from_agent' | 'to_agent';
    // The bytes of a message that is too large precede its event as output.
    const line = event.truncated
      ? Buffer.concat(stdout).subarray(-Number(event.size)).toString().trim()
      : textOf(event);
    const message = readMessage(line);
    if (!message || (event.truncated && direction === 'to_agent'))
      throw new Error(`event ${event.seq} is not a message`);
    const { source, ...after } = foldFrame(state, direction, message);
    assert.equal(event.subagent, source?.id, `event ${event.seq} is from another sub-agent`);
    state = after.state;
    if (direction === 'to_agent') sent.push(message);
  }
  return { state: stored(state), sent };
}

/** Throws if the rows and the log of a session disagree. */
export async function expectSameState(
  reader: Reader,
  log: Log,
  session_id: string,
  textOf = payloadText,
): Promise<void> {
  const session = (await findSession(reader, session_id))!;
  const { spilling, ...state } = stored(await loadAcpState(reader, session.num));
  const { state: folded, sent } = refold(log, session_id, textOf);
  assert.deepEqual({ ...state, spilling: false }, folded);
  assert.equal(spilling, false);
  await expectPrompts(reader, session.num, sent);
  const own = log.filter((event) => event.session_id === session_id);
  const rowsOf = <T extends { session_id: string }>(rows: T[]) =>
    rows.filter((row) => row.session_id === session_id);
  expectQuestions(rowsOf(await listReviews(reader, {})), own, 'review_id', folded);
  expectQuestions(rowsOf(await listElicitations(reader, {})), own, 'elicitation_id', folded);
}

async function expectPrompts(reader: Reader, session_num: number, sent: readonly Message[]): Promise<void> {
  const prompts = await reader.all(
    reader.sql.selectFrom('prompts').select('id').where('session_num', '=', session_num).orderBy('num'),
  );
  const prompt_ids = sent.flatMap((one) =>
    one.kind === 'request' && one.method === 'session/prompt' ? [one.id] : [],
  );
  assert.deepEqual(
    prompt_ids,
    prompts.map(({ id }) => id),
  );
}

interface QuestionRow {
  id: string;
  request_id: string;
  status: string;
}

/** `field`: the field with the id of such a request in events about it. */
function expectQuestions(
  rows: readonly QuestionRow[],
  log: Log,
  field: 'review_id' | 'elicitation_id',
  { received }: AcpState,
): void {
  const events = log.filter((event) => event.direction !== undefined && event[field] !== undefined);
  const idsOf = (direction: string) =>
    events.filter((event) => event.direction === direction).map((event) => event[field]);
  const [asked, answered] = [idsOf('from_agent'), idsOf('to_agent')];
  assert.deepEqual(asked.toSorted(), rows.map(({ id }) => id).toSorted());
  // No request has two answers. One without an answer is pending, withdrawn, or its session has ended.
  assert.equal(new Set(answered).size, answered.length);
  for (const row of rows) {
    const is_pending = row.status === 'pending';
    if (!is_pending && row.status !== 'cancelled') assert.ok(answered.includes(row.id), row.id);
    if (!is_pending) continue;
    assert.ok(!answered.includes(row.id), row.id);
    assert.ok(received.map(({ id }) => JSON.stringify(id)).includes(row.request_id), row.request_id);
  }
}

/** The state after a round trip through the database. */
function stored(state: AcpState): AcpState {
  return JSON.parse(JSON.stringify(state)) as AcpState;
}
