/** Audit records as sentences: who did what to what (pure). Every event has one. */
import type { AuditEvent } from '../../../features/audit/rules/audit.ts';
import type { AuditRecord } from '../../api/queries.ts';
import { table } from '../../table.ts';

/** The names of what records mention; an id that is unknown, such as that of something deleted, stays an id. */
export interface Names {
  user: (id: string) => string;
  agent: (id: string) => string;
  node: (id: string) => string;
  team: (id: string) => string;
}

/** The names of agents in their records, which outlive the agents; the newest name of each. `records`: newest first. */
export function agentNames(records: readonly AuditRecord[]): Map<string, string> {
  const names = new Map<string, string>();
  for (const { event, agent_id, details } of records) {
    if (agent_id === null || !naming.has(event) || names.has(agent_id)) continue;
    if (typeof details.name === 'string') names.set(agent_id, details.name);
  }
  return names;
}

const naming: ReadonlySet<AuditEvent> = new Set(['agent_created', 'agent_deleted', 'agent_forgotten']);

export interface Sentence {
  actor: string;
  /** What follows the actor. */
  text: string;
}

export function sentenceOf(record: AuditRecord, names: Names): Sentence {
  return { actor: actorOf(record, names), text: predicates[record.event](new Words(record, names)) };
}

/** A user, else a member of a team, else the service itself. Who only tries to sign in is not known. */
function actorOf({ user_id, event, details }: AuditRecord, names: Names): string {
  if (attempts.has(event)) return 'Somebody';
  if (user_id !== null) return names.user(user_id);
  if (typeof details.actor_id === 'string') return actorName(details.actor_id, names);
  if (typeof details.from_actor_id === 'string') return actorName(details.from_actor_id, names);
  return 'svc';
}

/** `lead of demo-team` for `lead@team_…`, and the name of a person. */
function actorName(actor_id: string, names: Names): string {
  const [, member, team_id] = /^([^@]+)@([^@]+)$/.exec(actor_id) ?? [];
  if (member === undefined || team_id === undefined) return actor_id.replace(/^user:/, '');
  const team = names.team(team_id);
  return team === team_id ? actor_id : `${member} of ${team}`;
}

const attempts: ReadonlySet<AuditEvent> = new Set([
  'user_login_failed',
  'user_login_throttled',
  'join_challenge_created',
  'join_failed',
]);

/** The parts of sentences that come from a record. */
class Words {
  readonly #record: AuditRecord;
  readonly #names: Names;

  constructor(record: AuditRecord, names: Names) {
    this.#record = record;
    this.#names = names;
  }

  /** A detail as text; '' if the record does not have it. */
  detail(name: string): string {
    const value = this.#record.details[name];
    return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  }

  get joined(): boolean {
    return this.#record.details.joined === true;
  }

  /** `agent fix-login`. An agent that was deleted has its name in some records. */
  get agent(): string {
    const id = this.#record.agent_id;
    if (id === null) return named('an agent', 'agent', this.detail('name'));
    const known = this.#names.agent(id);
    return `agent ${known === id ? this.detail('name') || id : known}`;
  }

  get node(): string {
    const id = this.detail('node_id');
    const known = id && this.#names.node(id);
    return named('a node', 'node', known === id ? this.detail('name') || id : known);
  }

  get subject(): string {
    const id = this.detail('subject_id');
    return named('a user', 'user', this.detail('username') || (id && this.#names.user(id)));
  }

  /** Whose it is, if not the actor's. */
  get others(): string {
    const id = this.detail('subject_id');
    return id && id !== this.#record.user_id ? ` of ${this.#names.user(id)}` : '';
  }

  /** Which user somebody tried to sign in as. */
  get attempted(): string {
    const { user_id } = this.#record;
    const name = this.detail('username') || (user_id !== null && this.#names.user(user_id));
    return name ? ` as ${name}` : '';
  }

  get step(): string {
    return `${named('a step', 'step', this.detail('step_key'))} of ${this.run}`;
  }

  get run(): string {
    const number = this.detail('number');
    if (!number) return this.detail('run_id') || 'a run';
    const id = this.detail('team_id');
    const team = id && this.#names.team(id);
    return `run ${number}${team && team !== id ? ` of ${team}` : ''}`;
  }

  /** `allowed “Write notes.md” for agent fix-login with “Allow once”`. Old records have only the id of the option. */
  get review(): string {
    const did = this.detail('outcome') === 'cancelled' ? 'dismissed' : decisions[this.detail('decision')];
    const title = this.detail('title');
    const what = title ? `“${title}” for ${this.agent}` : `a request of ${this.agent}`;
    const option = this.detail('option_name') || this.detail('option_id');
    return `${did ?? 'answered'} ${what}${option ? ` with “${option}”` : ''}`;
  }

  get to(): string {
    const member = this.detail('to_actor_id');
    return member ? ` to ${actorName(member, this.#names)}` : '';
  }
}

function named(unknown: string, kind: string, name: string): string {
  return name ? `${kind} ${name}` : unknown;
}

const decisions = table({ allow: 'allowed', deny: 'rejected' });
const answers = table({
  accept: 'answered',
  decline: 'declined',
  cancel: 'dismissed',
});

const predicates: Readonly<Record<AuditEvent, (words: Words) => string>> = {
  user_login: () => 'signed in',
  user_login_failed: (words) => `failed to sign in${words.attempted}`,
  user_login_throttled: (words) => `failed to sign in too often${words.attempted}, and must wait`,
  user_logout: () => 'signed out',
  token_refreshed: () => 'renewed a session',
  session_ended: () => 'ended a session',
  password_changed: (words) => `changed the password${words.others}`,
  passkey_registered: (words) => `added ${named('a passkey', 'passkey', words.detail('name'))}`,
  passkey_renamed: () => 'renamed a passkey',
  passkey_removed: (words) => `removed ${named('a passkey', 'passkey', words.detail('name'))}`,
  passkey_counter_regressed: () => 'signed in with a passkey that may have been copied',
  api_token_created: (words) => `created ${named('an API token', 'API token', words.detail('name'))}`,
  api_token_deleted: (words) => `deleted ${named('an API token', 'API token', words.detail('name'))}`,
  join_challenge_created: () => 'asked to create the first user',
  join_failed: () => 'entered a wrong PIN for the first user',
  user_created: (words) => (words.joined ? 'joined as the first user' : `created ${words.subject}`),
  user_updated: (words) => `changed ${words.subject}`,
  user_deleted: (words) => `deleted ${words.subject}`,

  agent_created: (words) => `created ${words.agent}`,
  agent_updated: (words) => `changed ${words.agent}`,
  agent_deleted: (words) => `deleted ${words.agent}`,
  agent_started: (words) => `started ${words.agent}`,
  agent_stopped: (words) =>
    `${words.detail('restart_at') ? 'cancelled the restart of' : 'stopped'} ${words.agent}`,
  agent_restarted: (words) => `restarted ${words.agent}`,
  agent_request_kept: (words) =>
    `asked to ${words.detail('request') || 'change'} ${words.agent}; it waits for its node`,
  agent_request_withdrawn: (words) => `withdrew a request for ${words.agent}`,
  agent_forgotten: (words) => `deleted the record of ${words.agent}, whose node cannot be reached`,
  forgotten_session_ended: (words) => `ended a session that was left behind by ${words.agent}`,
  agent_input_sent: (words) => `sent input to ${words.agent}`,
  worktree_removed: (words) => `removed the worktree of ${words.agent}`,

  node_registered: (words) => `added ${words.node}`,
  node_updated: (words) => `changed ${words.node}`,
  node_deleted: (words) => `deleted ${words.node}`,
  node_forgotten: (words) => `deleted the record of ${words.node}, which cannot be reached`,
  node_joined: (words) => `connected ${words.node}`,
  node_refused: (words) => `refused ${words.node}`,
  node_replaced: (words) => `found another disk on ${words.node}`,
  bootstrap_token_shown: () => 'read the token that nodes join with',
  bootstrap_token_rotated: () => 'replaced the token that nodes join with',
  permission_reviewed: (words) => words.review,
  permission_routed: (words) => `passed a request of ${words.agent}${words.to || ' to people'}`,
  permission_undeliverable: (words) => `could not deliver an answer to ${words.agent}`,
  elicitation_answered: (words) =>
    `${answers[words.detail('action')] ?? 'answered'} a question of ${words.agent}`,
  elicitation_undeliverable: (words) => `could not deliver an answer to ${words.agent}`,
  agent_prompted: (words) => `sent a prompt to ${words.agent}`,
  agent_prompt_changed: (words) => `changed a queued prompt of ${words.agent}`,
  agent_prompt_removed: (words) => `removed a queued prompt of ${words.agent}`,
  agent_turn_cancelled: (words) => `cancelled a turn of ${words.agent}`,
  agent_configured: (words) => `changed a setting of ${words.agent}`,
  mail_sent: (words) => `sent mail${words.to} in ${words.run}`,
  trigger_created: (words) => `added a trigger to ${words.run}`,
  trigger_deleted: (words) => `deleted a trigger of ${words.run}`,
  run_created: (words) => `started ${words.run}`,
  task_created: (words) => `created ${named('a task', 'task', words.detail('title'))}`,
  task_updated: (words) => `changed ${named('a task', 'task', words.detail('title'))}`,
  message_sent: (words) => `sent a message${words.to}`,
  config_changed: (words) => `changed ${named('a setting', 'the setting', words.detail('key'))}`,
  push_subscribed: () => 'turned on notifications on a device',
  push_unsubscribed: (words) => `turned off notifications on a device${words.others}`,
  push_tested: () => 'sent a test notification',
  push_keys_rotated: () => 'replaced the keys for notifications',

  team_created: (words) => `created ${named('a team', 'team', words.detail('name'))}`,
  team_updated: (words) => `changed ${named('a team', 'team', words.detail('name'))}`,
  team_deleted: (words) => `deleted ${named('a team', 'team', words.detail('name'))}`,
  run_completed: (words) => `completed ${words.run}`,
  run_failed: (words) => `ended ${words.run} as failed`,
  run_cancelled: (words) => `cancelled ${words.run}`,
  run_resumed: (words) => `resumed ${words.run}`,
  run_restarted: (words) => `restarted ${words.run}`,
  run_deleted: (words) => `deleted ${words.run}`,
  step_added: (words) => `added ${words.step}`,
  step_started: (words) => `started ${words.step}`,
  step_completed: (words) => `completed ${words.step}`,
  step_failed: (words) => `ended ${words.step} as failed`,
  step_input_required: (words) => `asked for input in ${words.step}`,
  step_resumed: (words) => `resumed ${words.step}`,
};
