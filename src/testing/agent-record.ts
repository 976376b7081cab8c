/** An agent's record for tests of what shows it. */
import type { Agent } from '../domain/agent.ts';

export const time = '2026-01-02T03:04:05.678Z';

export function agentRecord(fields: Partial<Agent>): Agent {
  return {
    id: 'agt_1',
    name: 'one',
    workdir: '/w',
    command: 'true',
    argv: null,
    protocol: 'auto',
    preset: null,
    worktree_mode: 'use_existing',
    worktree_repo: null,
    worktree_ref: null,
    worktree_branch: null,
    node_id: 'main',
    owner_id: 'usr_root',
    status: 'created',
    activity: null,
    exit_code: null,
    exit_signal: null,
    reason: null,
    session_id: null,
    session_count: 0,
    labels: {},
    env_keys: [],
    restart_policy: 'never',
    team_id: null,
    run_id: null,
    member_id: null,
    pending_reviews: 0,
    last_seq: 0,
    last_event_at: null,
    stale_since: null,
    created_at: time,
    updated_at: time,
    started_at: null,
    ended_at: null,
    stdin: false,
    on_exit: 'kill',
    leftovers: [],
    cleanup: null,
    pending: null,
    ...fields,
  };
}
