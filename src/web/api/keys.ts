export interface WaitingStepKey {
  run_id: string;
  step_key: string;
  waiting_since: string;
}

/**
 * The keys of the query cache. Records and lists of the same kind have different keys, so that the fleet feed can
 * update both (`fleet.ts`).
 */
export const keys = {
  agents: ['agents'],
  seen: ['seen'],
  agent: (agent_id: string) => ['agent', agent_id] as const,
  agent_deletion: (agent_id: string) => ['agent-deletion', agent_id] as const,
  agent_config: (agent_id: string, session_id: string | null) =>
    ['agent-config', agent_id, session_id] as const,
  sessions: (agent_id: string) => ['sessions', agent_id] as const,
  changes: (agent_id: string) => ['changes', agent_id] as const,
  /** Without a path, the prefix of every file's key. */
  change: (agent_id: string, path?: string, context?: number) =>
    path === undefined ? (['change', agent_id] as const) : (['change', agent_id, path, context] as const),
  files: (agent_id: string, text: string) => ['files', agent_id, text] as const,
  prompts: (agent_id: string) => ['prompts', agent_id] as const,
  search: (agent_id: string, q: string) => ['search', agent_id, q] as const,
  stderr: (agent_id: string, session_id: string | null) => ['stderr', agent_id, session_id] as const,
  reviews: ['reviews'],
  review: (review_id: string | undefined) => ['review', review_id] as const,
  elicitations: ['elicitations'],
  elicitation: (elicitation_id: string) => ['elicitation', elicitation_id] as const,
  teams: ['teams'],
  team: (team_id: string) => ['team', team_id] as const,
  /** The newest ones. */
  runs: (team_id: string) => ['runs', team_id] as const,
  /** All of them, in pages. */
  team_runs: (team_id: string) => ['runs', team_id, 'pages'] as const,
  all_runs: ['all-runs'],
  runs_with: (status: string) => ['all-runs', status] as const,
  run: (run_id: string) => ['run', run_id] as const,
  waiting_steps: ['waiting-steps'],
  waiting_runs: ['waiting-runs'],
  /** The step as it was when its wait ended. */
  settled_step: ({ run_id, step_key, waiting_since }: WaitingStepKey) =>
    ['settled-step', run_id, step_key, waiting_since] as const,
  steps: (run_id: string) => ['steps', run_id] as const,
  run_members: (run_id: string) => ['run-members', run_id] as const,
  nodes: ['nodes'],
  agent_nodes: ['agent-nodes'],
  node_measurements: ['node-measurements'],
  node_health: (node_id: string) => ['node-health', node_id] as const,
  bootstrap_token: ['bootstrap-token'],
  repositories: (node_id: string) => ['repositories', node_id] as const,
  repository: (node_id: string, path: string) => ['repository', node_id, path] as const,
  presets: (node_id: string) => ['presets', node_id] as const,
  /** The kept ones. */
  worktrees: ['worktrees'],
  worktree_removal: (worktree_id: string) => ['worktree-removal', worktree_id] as const,
  users: ['users'],
  sign_ins: ['sign-ins'],
  push_devices: ['push-devices'],
  push_subscription: ['push-subscription'],
  tokens: ['tokens'],
  config: ['config'],
  audit: (search: object) => ['audit', search] as const,
  audit_agent: (agent_id: string | null) => ['audit-agent', agent_id] as const,
  audit_verified: ['audit-verified'] as const,
  audit_newest: (search: object) => ['audit-newest', search] as const,
  openapi: ['openapi'],
} as const;
