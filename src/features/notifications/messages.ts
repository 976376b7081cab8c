/**
 * The texts of notifications. Other people may see them on a screen, and external systems store them. So they contain
 * only fixed text and names that people chose; text from the agent is included only if the recipient enabled that.
 */

import { escapeHidden } from '../../core/visible.ts';
import type { RunStatus } from '../runs/rules/run.ts';
import { limits } from './limits.ts';
import { notificationTag, type PushKind, type PushMessage } from './rules.ts';

/** A message without the number of waiting requests, which differs by person. */
export type NotificationText = Omit<PushMessage, 'waiting'>;

/** The kinds of tool calls that the protocol defines, except `other`; an agent may send any text. */
const callKinds = new Set([
  ...['read', 'edit', 'delete', 'move', 'search', 'execute', 'think', 'fetch', 'switch_mode'],
]);

const reasons: Record<string, string> = {
  spawn_failed: 'it could not be started',
  workdir_refused: 'its workdir is missing or not allowed',
  exit_status_unknown: 'its exit status is unknown',
  host_restarted: 'its host was restarted',
  session_lost: 'its session is lost',
};

const NOT_NEEDED = 'No longer needed';

export function reviewMessage(
  review: { id: string; agent_name: string; tool_call: Record<string, unknown> },
  { with_commands }: { with_commands: boolean },
): NotificationText {
  const { kind, title } = review.tool_call;
  const named = typeof kind === 'string' && callKinds.has(kind) ? kind.replace('_', ' ') : 'permission';
  const command = with_commands && typeof title === 'string' ? plain(title) : '';
  return {
    kind: 'review',
    tag: reviewTag(review.id),
    title: `${plain(review.agent_name)} needs you`,
    body: command === '' ? named : `${named}: ${command}`,
    path: `/approvals?review=${encodeURIComponent(review.id)}`,
  };
}

export function reviewTag(review_id: string): string {
  return notificationTag('permission', review_id);
}

export function elicitationMessage(
  elicitation: { id: string; agent_name: string; mode: 'form' | 'url'; message: string },
  { with_commands }: { with_commands: boolean },
): NotificationText {
  const named = elicitation.mode === 'form' ? 'form to fill in' : 'link to open';
  const message = with_commands ? plain(elicitation.message) : '';
  return {
    kind: 'review',
    tag: elicitationTag(elicitation.id),
    title: `${plain(elicitation.agent_name)} needs you`,
    body: message === '' ? named : `${named}: ${message}`,
    path: `/approvals?elicitation=${encodeURIComponent(elicitation.id)}`,
  };
}

export function elicitationTag(elicitation_id: string): string {
  return notificationTag('elicitation', elicitation_id);
}

export function questionMessage(
  step: { run_id: string; step_key: string; team_name: string; member_id: string; question: string },
  { with_commands }: { with_commands: boolean },
): NotificationText {
  const named = `question from ${plain(step.member_id)}`;
  // A leader's agent may have chosen the key of the step, so it is not shown.
  const question = with_commands ? plain(step.question) : '';
  return {
    kind: 'review',
    tag: questionTag(step),
    title: `${plain(step.team_name)} needs you`,
    body: question === '' ? named : `${named}: ${question}`,
    path: `/approvals?question=${encodeURIComponent(`${step.run_id}/${step.step_key}`)}`,
  };
}

export function questionTag({ run_id, step_key }: { run_id: string; step_key: string }): string {
  return notificationTag('question', `${run_id}/${step_key}`);
}

export function runWaitMessage(
  run: { id: string; number: number; team_id: string; team_name: string; reason: string },
  { with_commands }: { with_commands: boolean },
): NotificationText {
  const named = `run ${run.number} waits`;
  const reason = with_commands ? plain(run.reason) : '';
  return {
    kind: 'review',
    tag: runWaitTag(run.id),
    title: `${plain(run.team_name)} needs you`,
    body: reason === '' ? named : `${named}: ${reason}`,
    path: runPath(run),
  };
}

export function runWaitTag(run_id: string): string {
  return notificationTag('run', run_id);
}

export function signInMessage(agent: { id: string; name: string }): NotificationText {
  return {
    kind: 'review',
    tag: signInTag(agent.id),
    title: `${plain(agent.name)} needs you`,
    body: 'sign-in',
    path: `/approvals?sign_in=${encodeURIComponent(agent.id)}`,
  };
}

export function signInTag(agent_id: string): string {
  return notificationTag('sign_in', agent_id);
}

/** The message that replaces the notification of a request once the request is closed. */
export function closedMessage(original: PushMessage, answered_by: string | null): NotificationText {
  const body = answered_by === null ? NOT_NEEDED : `Answered by ${plain(answered_by)}`;
  return { ...original, kind: 'closed', body };
}

/** The message that replaces a notification whose reader must not learn more about its subject. */
export function withheldMessage({ tag }: PushMessage): NotificationText {
  return { kind: 'closed', tag, title: 'svc', body: NOT_NEEDED, path: '/' };
}

export function failureMessage(agent: {
  id: string;
  name: string;
  reason: string | null;
  exit_code: number | null;
  exit_signal: string | null;
}): NotificationText {
  const { exit_code, exit_signal, reason } = agent;
  const code = exit_code === null ? '' : `exit code ${exit_code}`;
  const ended = exit_signal === null ? code : `ended by ${exit_signal}`;
  return {
    kind: 'agent_failed',
    tag: failureTag(agent.id),
    title: `${plain(agent.name)} failed`,
    body: reasons[reason ?? ''] ?? (ended || 'the process failed'),
    path: `/agents/${encodeURIComponent(agent.id)}`,
  };
}

export function failureTag(agent_id: string): string {
  return notificationTag('agent_failed', agent_id);
}

export function runMessage(run: {
  id: string;
  number: number;
  status: RunStatus;
  team_id: string;
  team_name: string;
}): NotificationText {
  return {
    kind: 'run_ended',
    tag: runTag(run.id),
    title: `${plain(run.team_name)}: run ${run.number} ${run.status}`,
    body: run.status === 'completed' ? 'The result is available.' : 'Open it to see why.',
    path: runPath(run),
  };
}

export function runTag(run_id: string): string {
  return notificationTag('run_ended', run_id);
}

function runPath({ id, team_id }: { id: string; team_id: string }): string {
  return `/teams/${encodeURIComponent(team_id)}/runs/${encodeURIComponent(id)}`;
}

export function testMessage(): NotificationText {
  return {
    kind: 'test',
    tag: 'test',
    title: 'Notifications work',
    body: 'This is a test notification.',
    path: '/settings/notifications',
  };
}

/** Whether a device with these settings wants this message. */
export function matchesKinds({ kind }: NotificationText, kinds: readonly PushKind[]): boolean {
  return kind === 'closed' || kind === 'test' || kinds.includes(kind);
}

/** One line, which shows where lines end, without invisible characters or characters that reorder text. */
function plain(text: string): string {
  const line = escapeHidden(text.trim())
    .replace(/\s*\n\s*/g, ' ⏎ ')
    .replace(/\s+/g, ' ');
  const letters = [...line];
  const most = limits.push_text_chars_max;
  return letters.length > most ? `${letters.slice(0, most - 1).join('')}…` : line;
}
