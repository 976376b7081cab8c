/** The names of audit events, and the record as clients see it. */
export const auditEvents = [
  'user_login',
  'user_login_failed',
  'user_login_throttled',
  'user_logout',
  'token_refreshed',
  'session_ended',
  'password_changed',
  'passkey_registered',
  'passkey_renamed',
  'passkey_removed',
  'passkey_counter_regressed',
  'api_token_created',
  'api_token_deleted',
  'join_challenge_created',
  'join_failed',
  'user_created',
  'user_updated',
  'user_deleted',

  'agent_created',
  'agent_updated',
  'agent_deleted',
  'agent_started',
  'agent_stopped',
  'agent_restarted',
  'agent_request_kept',
  'agent_request_withdrawn',
  'agent_forgotten',
  'forgotten_session_ended',
  'agent_input_sent',
  'worktree_removed',

  'node_registered',
  'node_updated',
  'node_deleted',
  'node_forgotten',
  'node_joined',
  'node_refused',
  'node_replaced',
  'bootstrap_token_shown',
  'bootstrap_token_rotated',
  'permission_reviewed',
  'permission_routed',
  'permission_undeliverable',
  'elicitation_answered',
  'elicitation_undeliverable',
  'agent_prompted',
  'agent_prompt_changed',
  'agent_prompt_removed',
  'agent_turn_cancelled',
  'agent_configured',
  'mail_sent',
  'trigger_created',
  'trigger_deleted',
  'run_created',
  'task_created',
  'task_updated',
  'message_sent',
  'config_changed',
  'push_subscribed',
  'push_unsubscribed',
  'push_tested',
  'push_keys_rotated',

  'team_created',
  'team_updated',
  'team_deleted',
  'run_completed',
  'run_failed',
  'run_cancelled',
  'run_resumed',
  'run_restarted',
  'run_deleted',
  'step_added',
  'step_started',
  'step_completed',
  'step_failed',
  'step_input_required',
  'step_resumed',
] as const;
export type AuditEvent = (typeof auditEvents)[number];

/** Added to the details of what an operator did through the internal listener, without a user's token. */
export const BY_OPERATOR = { authenticated_by: 'internal_grpc' } as const;

export const auditLevels = ['info', 'warn'] as const;
export type AuditLevel = (typeof auditLevels)[number];

export interface AuditRecord {
  id: number;
  /** RFC 3339. */
  timestamp: string;
  level: AuditLevel;
  event: AuditEvent;
  agent_id: string | null;
  user_id: string | null;
  ip: string | null;
  workdir: string | null;
  details: Record<string, unknown>;
  /** SHA-256 over the previous record's hash and this record's content, hex. */
  hash: string;
}
