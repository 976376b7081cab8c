/** Columns of agents, their sessions, and the requests and prompts of their conversations. */
import type { Generated } from 'kysely';
import type { Cleanup, EndReason, SessionState } from '../../core/session.ts';
import type {
  Activity,
  AgentStatus,
  ObservedBehavior,
  OnExit,
  PendingKind,
  PermissionMode,
  Protocol,
  RestartPolicy,
  RunEnd,
  WorktreeMode,
} from '../../features/agents/rules.ts';
import type { Bool, Json } from './columns.ts';

export interface AgentsTables {
  agents: {
    num: Generated<number>;
    id: string;
    name: string;
    owner_id: string;
    node_id: string;
    workdir: string;
    command: string;
    argv: Json | null;
    protocol: Protocol;
    preset: string | null;
    permission_mode: Generated<PermissionMode>;
    /** Whether the agent asks for permission, as observed in its last session. */
    asks: Generated<ObservedBehavior>;
    worktree_mode: WorktreeMode;
    worktree_repo: string | null;
    worktree_ref: string | null;
    worktree_branch: string | null;
    worktree_base: string | null;
    env: Json;
    labels: Json;
    restart_policy: RestartPolicy;
    stdin: Bool;
    on_exit: OnExit;
    status: AgentStatus;
    /**
     * For agents that speak ACP, their activity as of their last frame. For others, it depends on how long they have
     * been silent.
     */
    activity: Activity | null;
    /** Since when its session needs a sign-in; null if it does not. */
    sign_in_since: number | null;
    exit_code: number | null;
    exit_signal: string | null;
    reason: string | null;
    cleanup: Cleanup | null;
    leftovers: Json;
    session_id: string | null;
    session_count: number;
    /**
     * The remote node that reported this agent, which the database did not know; null for other agents. It counts as the
     * node's, although it belongs to root.
     */
    recovered_from: Generated<string | null>;
    /** How many of its sessions its node reported although the database did not know them. */
    recovered_sessions: Generated<number>;
    /** Consecutive restarts by the restart policy. */
    restart_count: number;
    pending: PendingKind | null;
    /** With `pending`, the state of the last request: see `features/agents/pending-state.ts`. */
    pending_request: Json | null;
    stale_since: number | null;
    created_at: number;
    updated_at: number;
    started_at: number | null;
    ended_at: number | null;
    archived_at: number | null;
    /**
     * The id of the agent's own session, which the next one continues. Secret, because it is enough to resume the
     * conversation.
     */
    acp_session_id: string | null;
    /** For a member's agent: the team whose run it belongs to. */
    team_num: number | null;
    run_num: number | null;
    member_id: string | null;
    /**
     * Id of the team whose run created the agent, even if the team was deleted. It decides where the preset keeps its
     * state.
     */
    state_team: string | null;
    /** See `Progress`. */
    progress: Json | null;
    /** See `DiffSize`. */
    diff: Json | null;
  };
  /** Worktrees of deleted agents. `num`, `agent_id` and `agent_name`: those of the agent. */
  agents_seen: {
    num: Generated<number>;
    user_id: string;
    agent_num: number;
    /** The number of the last event that the user has seen. */
    last_seen: number;
  };
  kept_worktrees: {
    num: number;
    agent_id: string;
    agent_name: string;
    owner_id: string;
    team_num: number | null;
    run_id: string | null;
    member_id: string | null;
    node_id: string;
    workdir: string;
    repo: string | null;
    branch: string | null;
    base: string | null;
    reason: string;
    kept_at: number;
    /** See `DiffSize`. */
    diff: Json | null;
  };
  sessions: {
    num: Generated<number>;
    id: string;
    agent_num: number;
    node_id: string;
    number: number;
    state: SessionState;
    /** A stop was accepted: the final status is `cancelled`, whatever the exit code. */
    stopping: Bool;
    /** The status with which the run of the agent ended, if that is why the session was stopped. */
    stopped_by_run: RunEnd | null;
    pid: number | null;
    exit_code: number | null;
    exit_signal: string | null;
    reason: EndReason | null;
    cleanup: Cleanup | null;
    created_at: number;
    started_at: number | null;
    ended_at: number | null;
    /** The agent's first event of this session, to find its output without a scan. */
    first_seq: number;
    /** The last node fact that was handled. */
    fact: number;
    /** Bytes of stdin that intents have written to the node's journal so far. */
    stdin_bytes: number;
    /**
     * The database was restored, and the journal contains stdin that the database does not know. No more input is
     * possible.
     */
    stdin_lost: Generated<Bool>;
    /** How its stdout is read. */
    protocol: Generated<'plain' | 'acp'>;
  };
  acp_states: {
    session_num: number;
    /** See `acp/state.ts`. */
    state: Json;
  };
  prompts: {
    num: Generated<number>;
    id: string;
    agent_num: number;
    /** The session that it was sent to. */
    session_num: number | null;
    state: 'queued' | 'sent' | 'ended' | 'lost';
    /** ACP content blocks. */
    content: Json;
    stop_reason: string | null;
    /** A user's id. */
    created_by: string | null;
    created_at: number;
    sent_at: number | null;
    ended_at: number | null;
  };
  reviews: {
    num: Generated<number>;
    id: string;
    agent_num: number;
    session_num: number;
    /** The agent's JSON-RPC id, as JSON. */
    request_id: Json;
    /** As the agent sent it. */
    tool_call: Json;
    options: Json;
    /** The sub-agent that asks; null if it is the agent itself. */
    subagent: Json | null;
    status: 'pending' | 'answered' | 'cancelled' | 'expired';
    decision: 'allow' | 'deny' | null;
    option_id: string | null;
    /** Name of the responder, for display. */
    answered_by: string | null;
    delivery: 'queued' | 'written' | 'undeliverable' | null;
    /** The answer is delivered once this many bytes of the agent's stdin are written. */
    stdin_end: number | null;
    origin_actor_id: string | null;
    route: 'human' | 'leader';
    routed_to: string | null;
    created_at: number;
    answered_at: number | null;
    expires_at: number | null;
  };
  elicitations: {
    num: Generated<number>;
    id: string;
    agent_num: number;
    session_num: number;
    /** The agent's JSON-RPC id, as JSON. */
    request_id: Json;
    /** The agent's id for a URL elicitation. */
    acp_id: string | null;
    tool_call_id: string | null;
    mode: 'form' | 'url';
    message: string;
    form: Json | null;
    url: string | null;
    status: 'pending' | 'accepted' | 'declined' | 'cancelled' | 'expired';
    /** Name of the responder, for display. */
    answered_by: string | null;
    delivery: 'queued' | 'written' | 'undeliverable' | null;
    /** The answer is delivered once this many bytes of the agent's stdin are written. */
    stdin_end: number | null;
    created_at: number;
    answered_at: number | null;
    completed_at: number | null;
    expires_at: number | null;
  };
}
