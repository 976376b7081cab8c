/**
 * Opens, completes and ends an agent's elicitations. There is one row per request, written before anyone sees the
 * request.
 */
import type { Elicitation, Form } from '../../acp/elicitation.ts';
import type { ReceivedRequest } from '../../acp/state.ts';
import { problems } from '../../core/problem.ts';
import type { Tx } from '../../store/store.ts';
import type { AcpTransaction } from '../agents/acp-transaction.ts';
import type { AgentCore } from '../agents/core.ts';
import { AgentRequests } from '../reviews/agent-requests.ts';
import {
  type ElicitationRow,
  findElicitation,
  incompleteElicitations,
  insertElicitation,
  pendingElicitations,
  queuedElicitations,
  toElicitation,
  updateElicitation,
} from './queries.ts';

export const elicitationRequests = new AgentRequests<ElicitationRow>({
  name: 'elicitation',
  table: 'elicitations',
  notFound: problems.elicitationNotFound,
  undeliverable_event: 'elicitation_undeliverable',
  answerOf: ({ status }) => ({ status }),
  find: findElicitation,
  pending: pendingElicitations,
  queued: queuedElicitations,
  update: updateElicitation,
  cancel: (core, tx, row) => closeElicitation(core, tx, row, { status: 'cancelled' }),
  publish: publishElicitation,
});

/** `timeout_ms`: null means no limit. */
export async function openElicitation(
  transaction: AcpTransaction,
  request: ReceivedRequest,
  { message, form, ...elicitation }: Elicitation,
  timeout_ms: number | null,
): Promise<void> {
  const { tx, agent, session, now, core } = transaction;
  const id = transaction.elicitationId(request.number);
  const expires_at = timeout_ms === null ? null : now + timeout_ms;
  await insertElicitation(tx, {
    id,
    agent_num: agent.num,
    session_num: session.num,
    request_id: JSON.stringify(request.id),
    ...elicitation,
    message: transaction.redact(message),
    form: form && JSON.stringify(redacted(form, (text) => transaction.redact(text))),
    status: 'pending',
    created_at: now,
    expires_at,
  });
  if (expires_at !== null) await core.timers.set(tx, 'elicitation_deadline', id, expires_at, {});
  await core.facts.record(tx, 'elicitation_opened', id, { elicitation_id: id });
  transaction.publishAtEnd();
  await publishElicitation(core, tx, id);
}

/**
 * Redacts a form. Names and values are sent back to the agent, and a URL is opened, so they are not redacted, just like the
 * ids of a review's options. A default that would have to be redacted is dropped, so that nobody sends the redacted value.
 */
function redacted(form: Form, redact: (text: string) => string): Form {
  const redactTexts = <T extends { title: string | null; description: string | null }>(item: T): T => ({
    ...item,
    title: item.title && redact(item.title),
    description: item.description && redact(item.description),
  });
  const fields = form.fields.map((field) => ({
    ...redactTexts(field),
    choices: field.choices.map(redactTexts),
    default:
      field.type === 'text' && typeof field.default === 'string' && redact(field.default) !== field.default
        ? null
        : field.default,
  }));
  return { ...redactTexts(form), fields };
}

/** Handles the agent's report that the action at its URL is complete. Unknown and already completed ids change nothing. */
export async function completeElicitations(
  { tx, session, core, now }: AcpTransaction,
  acp_id: string,
): Promise<void> {
  for (const row of await incompleteElicitations(tx, session.num, acp_id)) {
    await updateElicitation(tx, row.num, { completed_at: now });
    await publishElicitation(core, tx, row.id);
  }
}

/** Answers all pending elicitations with `cancel`. `by`: the person's display name; null for the service. */
export async function cancelElicitations(transaction: AcpTransaction, by: string | null): Promise<void> {
  const { tx, agent, session, core } = transaction;
  for (const row of await pendingElicitations(tx, agent.num, session.num)) {
    const about = { elicitation_id: row.id, answered_by: by };
    transaction.respond(JSON.parse(row.request_id), { result: { action: 'cancel' } }, about);
    await closeElicitation(core, tx, row, { status: 'cancelled', answered_by: by });
    transaction.publishAtEnd();
  }
}

/** Ends an elicitation in the caller's transaction and publishes it. */
export async function closeElicitation(
  core: AgentCore,
  tx: Tx,
  row: ElicitationRow,
  changes: Parameters<typeof updateElicitation>[2],
): Promise<void> {
  await updateElicitation(tx, row.num, { answered_at: core.clock.now(), ...changes });
  await core.timers.clear(tx, 'elicitation_deadline', row.id);
  await core.facts.record(tx, 'elicitation_closed', row.id, { elicitation_id: row.id });
  await publishElicitation(core, tx, row.id);
}

/** Publishes the current elicitation on the fleet feed. */
export async function publishElicitation(core: AgentCore, tx: Tx, id: string): Promise<void> {
  const row = (await findElicitation(tx, id))!;
  const record = { ...toElicitation(row) };
  await core.feed.append(tx, 'elicitation', row.owner_id, record, row.team_num, row.agent_id);
}
