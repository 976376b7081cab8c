/** What notifications are about, and who may get them: everyone whom the policy lets act on it. */
import { type Action, decide, type Owned } from '../../core/policy.ts';
import { agentResource, reviewResource, teamResource } from '../../store/resources.ts';
import type { Reader } from '../../store/store.ts';
import type { Caller, Role } from '../accounts/rules.ts';
import { findAgent } from '../agents/queries/agents.ts';
import { findElicitation } from '../elicitations/queries.ts';
import { findReview } from '../reviews/queries.ts';
import { findRun } from '../runs/queries/runs.ts';
import { findTeam } from '../teams/queries.ts';
import { limits } from './limits.ts';
import { closedMessage, type NotificationText, withheldMessage } from './messages.ts';
import { countWaiting } from './queries.ts';
import { type PushMessage, type TagKind, tagPrefixes } from './rules.ts';

export interface Subject {
  /** The action that a notified user may take. */
  action: Action;
  resource: Owned;
}

export type Recipient = Omit<Caller, 'grant' | 'ip'>;

type FindSubject = (reader: Reader, id: string) => Promise<Subject | null>;

const finders: Record<TagKind, FindSubject> = {
  permission: async (reader, id) => {
    const row = await findReview(reader, id);
    return row ? { action: 'review.answer', resource: await reviewResource(reader, row) } : null;
  },
  elicitation: async (reader, id) => {
    const row = await findElicitation(reader, id);
    return row ? { action: 'review.answer', resource: await reviewResource(reader, row) } : null;
  },
  question: (reader, id) => ofRun(reader, id.split('/', 1)[0]!, 'team.work'),
  run: (reader, id) => ofRun(reader, id, 'team.work'),
  run_ended: (reader, id) => ofRun(reader, id, 'team.read'),
  // Only its owner and root may sign in for an agent.
  sign_in: (reader, id) => ofAgent(reader, id, 'agent.drive'),
  agent_failed: (reader, id) => ofAgent(reader, id, 'agent.read'),
};

async function ofAgent(reader: Reader, id: string, action: Action): Promise<Subject | null> {
  const row = await findAgent(reader, id);
  return row ? { action, resource: await agentResource(reader, row) } : null;
}

async function ofRun(reader: Reader, id: string, action: Action): Promise<Subject | null> {
  const run = await findRun(reader, id);
  const team = run && (await findTeam(reader, run.team_id));
  return team ? { action, resource: await teamResource(reader, team) } : null;
}

/** What the notification with this tag is about; null if it no longer exists. */
export async function findSubject(reader: Reader, tag: string): Promise<Subject | null> {
  for (const [kind, prefix] of Object.entries(tagPrefixes) as [TagKind, string][]) {
    if (tag.startsWith(prefix)) return finders[kind](reader, tag.slice(prefix.length));
  }
  return null;
}

export function mayReceive(recipient: Recipient, { action, resource }: Subject): boolean {
  return decide({ ...recipient, grant: null, ip: null }, action, resource) === 'allow';
}

/**
 * The text that replaces a notification. It says nothing about the subject to users who have lost access to it. Once the
 * subject is deleted, nobody knows who that is, so it adds nothing to what was certainly sent.
 */
export function closingText(
  recipient: Recipient,
  subject: Subject | null,
  original: PushMessage,
  { sent_at, answered_by }: { sent_at: number | null; answered_by: string | null },
): NotificationText {
  if (subject === null) return sent_at === null ? withheldMessage(original) : closedMessage(original, null);
  return mayReceive(recipient, subject) ? closedMessage(original, answered_by) : withheldMessage(original);
}

/** The number of waiting requests that the web UI shows to a user. */
export function waitingFor(
  reader: Reader,
  { user_id, role }: { user_id: string; role: Role },
): Promise<number> {
  const view = { user_id: role === 'root' ? null : user_id, limits: null };
  return countWaiting(reader, view, limits.push_waiting_max);
}
