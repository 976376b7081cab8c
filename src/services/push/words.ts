/**
 * What a notification says. It is read over shoulders and kept by systems that are not ours, so it holds names that people
 * gave and words of ours; what an agent wrote only where its person asked for that.
 */
import { limits } from '../../base/limits.ts';
import type { PushKind, PushMessage } from '../../domain/push.ts';
import type { RunStatus } from '../../domain/run.ts';
import { visible } from '../../domain/visible.ts';

/** All of a message but how many wait, which differs by person. */
export type Words = Omit<PushMessage, 'waiting'>;

/** Kinds of tool calls that the protocol names; an agent may write anything there. */
const callKinds = new Set([
  ...['read', 'edit', 'delete', 'move', 'search', 'execute', 'think', 'fetch', 'switch_mode'],
]);

const reasons: Record<string, string> = {
  spawn_failed: 'it could not be started',
  workdir_refused: 'its folder was refused',
  exit_status_unknown: 'how it ended is not known',
  host_restarted: 'its machine was restarted',
  session_lost: 'its session is lost',
};

export function reviewWords(
  review: { id: string; agent_name: string; tool_call: Record<string, unknown> },
  { with_commands }: { with_commands: boolean },
): Words {
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
  return `review-${review_id}`;
}

/** In the place of what asked for an answer. */
export function closedWords(asked: PushMessage, answered_by: string | null): Words {
  const body = answered_by === null ? 'No longer needed' : `Answered by ${plain(answered_by)}`;
  return { ...asked, kind: 'closed', body };
}

export function failureWords(agent: {
  id: string;
  name: string;
  reason: string | null;
  exit_code: number | null;
  exit_signal: string | null;
}): Words {
  const { exit_code, exit_signal, reason } = agent;
  const code = exit_code === null ? '' : `exit code ${exit_code}`;
  const ended = exit_signal === null ? code : `ended by ${exit_signal}`;
  return {
    kind: 'agent_failed',
    tag: `agent-${agent.id}`,
    title: `${plain(agent.name)} failed`,
    body: reasons[reason ?? ''] ?? (ended || 'it ended with a failure'),
    path: `/agents/${encodeURIComponent(agent.id)}`,
  };
}

export function runWords(run: {
  id: string;
  number: number;
  status: RunStatus;
  team_id: string;
  team_name: string;
}): Words {
  return {
    kind: 'run_ended',
    tag: `run-${run.id}`,
    title: `${plain(run.team_name)}: run ${run.number} ${run.status}`,
    body: run.status === 'completed' ? 'Its result is there.' : 'Open it to see why.',
    path: `/teams/${encodeURIComponent(run.team_id)}/runs/${encodeURIComponent(run.id)}`,
  };
}

export function testWords(): Words {
  return {
    kind: 'test',
    tag: 'test',
    title: 'Notifications work',
    body: 'This is what you asked for.',
    path: '/settings/notifications',
  };
}

/** Whether a device that wants these kinds wants these words. */
export function isWanted({ kind }: Words, kinds: readonly PushKind[]): boolean {
  return kind === 'closed' || kind === 'test' || kinds.includes(kind);
}

/** One line in which nothing hides or turns text. */
function plain(text: string): string {
  const line = visible(text).replace(/\s+/g, ' ').trim();
  const letters = [...line];
  const most = limits.push_text_chars_max;
  return letters.length > most ? `${letters.slice(0, most - 1).join('')}…` : line;
}
