/** Column types of every table, for Kysely. The SQL is in `migrations/`; times are Unix milliseconds, booleans 0 or 1. */
import type { Generated } from 'kysely';
import type { RunMode, RunStatus, StepStatus } from '../domain/run.ts';
import type { MemberKind, StepCondition } from '../domain/team.ts';

type Bool = number;
type Json = string;

export interface Tables {
  meta: { key: string; value: string };

  users: {
    id: string;
    username: string;
    role: 'root' | 'user';
    password_hash: string;
    created_at: number;
    updated_at: number;
  };
  tokens: {
    id: string;
    user_id: string;
    kind: 'session' | 'api';
    /** SHA-256 of the opaque token. */
    hash: Uint8Array;
    name: string | null;
    user_agent: string | null;
    ip: string | null;
    created_at: number;
    last_used_at: number;
    /** Idle end; null for API tokens without expiry. Moved on use. */
    idle_expires_at: number | null;
    expires_at: number | null;
    /** When this sign-in last showed the password; null: never. */
    password_at: number | null;
    /** Of API tokens. */
    scopes: Json | null;
    /** Null: not limited to agents. */
    agent_ids: Json | null;
    /** Null: not limited to teams. */
    team_ids: Json | null;
  };
  passkeys: {
    id: string;
    user_id: string;
    credential_id: Uint8Array;
    /** As a COSE key. */
    public_key: Uint8Array;
    /** How often it was used, by its own count; 0 where it does not count. */
    counter: number;
    transports: Json;
    name: string;
    created_at: number;
    last_used_at: number | null;
  };
  passkey_registrations: { token_id: string; challenge: Uint8Array; expires_at: number };
  passkey_logins: {
    num: Generated<number>;
    id: string;
    challenge: Uint8Array;
    network: string;
    expires_at: number;
  };
  join_challenges: {
    id: number;
    token_hash: Uint8Array;
    pin_hash: Uint8Array;
    tries_left: number;
    expires_at: number;
    used: Bool;
  };
  login_throttle: { key: string; failures: number; window_started_at: number; blocked_until: number };
  audit: {
    id: Generated<number>;
    ts: number;
    level: string;
    event: string;
    agent_id: string | null;
    user_id: string | null;
    ip: string | null;
    workdir: string | null;
    details: Json;
    /** SHA-256 over the previous record's hash and this record's content. */
    hash: Uint8Array;
  };
  idempotency: {
    user_id: string;
    key: string;
    request_hash: Uint8Array;
    /** Null while the first request is under way. */
    status: number | null;
    body: Json | null;
    location: string | null;
    created_at: number;
  };
  settings: { key: string; value: Json; updated_at: number; updated_by: string | null };

  agents: {
    num: Generated<number>;
    id: string;
    name: string;
    owner_id: string;
    node_id: string;
    workdir: string;
    command: string;
    argv: Json | null;
    protocol: string;
    preset: string | null;
    permission_mode: Generated<string>;
    /** What was observed of its last session. */
    asks: Generated<string>;
    worktree_mode: string;
    worktree_repo: string | null;
    worktree_ref: string | null;
    worktree_branch: string | null;
    worktree_base: string | null;
    env: Json;
    labels: Json;
    restart_policy: string;
    stdin: Bool;
    on_exit: string;
    status: string;
    /** Of agents that speak ACP, as their last frame left it; the others' follows from their silence. */
    activity: string | null;
    exit_code: number | null;
    exit_signal: string | null;
    reason: string | null;
    cleanup: string | null;
    leftovers: Json;
    session_id: string | null;
    session_count: number;
    /** Restarts in a row by the restart policy. */
    restart_count: number;
    pending: string | null;
    /** What it takes to carry `pending` out; null: a session's intent in the outbox does. */
    pending_request: Json | null;
    stale_since: number | null;
    created_at: number;
    updated_at: number;
    started_at: number | null;
    ended_at: number | null;
    /** The agent's own session that a new one of ours goes on with. A secret: whoever has it can resume it. */
    acp_session_id: string | null;
    /** Of a member's agent: it belongs to this run of the team. */
    team_num: number | null;
    run_num: number | null;
    member_id: string | null;
  };
  sessions: {
    num: Generated<number>;
    id: string;
    agent_num: number;
    node_id: string;
    number: number;
    state: 'starting' | 'running' | 'ended';
    /** A stop was accepted: the final status is `cancelled` whatever the exit code. */
    stopping: Bool;
    pid: number | null;
    exit_code: number | null;
    exit_signal: string | null;
    reason: string | null;
    cleanup: string | null;
    created_at: number;
    started_at: number | null;
    ended_at: number | null;
    /** The agent's first event of this session, so that its output is found without a scan. */
    first_seq: number;
    /** Node facts up to here are consumed. */
    fact: number;
    /** Bytes of stdin given to the node's journal by intents so far. */
    stdin_bytes: number;
    /** Its stdin holds more than this database knows of, for it is an older one: nothing more can be said to it. */
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
    /** As the agent sent them. */
    tool_call: Json;
    options: Json;
    status: 'pending' | 'answered' | 'cancelled' | 'expired';
    decision: 'allow' | 'deny' | null;
    option_id: string | null;
    /** Who, as people read it. */
    answered_by: string | null;
    delivery: 'queued' | 'written' | 'undeliverable' | null;
    /** The answer is with the agent once its stdin is this long. */
    stdin_end: number | null;
    origin_actor_id: string | null;
    route: 'human' | 'leader';
    routed_to: string | null;
    created_at: number;
    answered_at: number | null;
    expires_at: number | null;
  };
  teams: {
    num: Generated<number>;
    id: string;
    name: string;
    description: string;
    /** A `TeamSpec` with every default filled in. */
    spec: Json;
    version: number;
    /** A user's id. */
    created_by: string;
    created_at: number;
    updated_at: number;
  };
  team_humans: { team_num: number; user_id: string };
  tasks: {
    num: Generated<number>;
    id: string;
    team_num: number;
    /** Counts the team's tasks. */
    number: number;
    title: string;
    description: string;
    status: 'open' | 'in_progress' | 'in_review' | 'completed' | 'cancelled';
    assignee_member_id: string | null;
    conversation_id: string;
    version: number;
    created_by: string;
    created_at: number;
    updated_at: number;
  };
  runs: {
    num: Generated<number>;
    id: string;
    team_num: number;
    /** Counts the team's runs. */
    number: number;
    task_num: number;
    status: RunStatus;
    input: Json;
    output: Json | null;
    error: string | null;
    attempt: number;
    version: number;
    mode: RunMode;
    leader: 'unasked' | 'asking' | 'answered' | 'unclear';
    rounds: number;
    rounds_before: Generated<number>;
    steps_seen: number;
    /** Since when something wants a human's eye; null: nothing does. */
    attention_at: number | null;
    attention: string | null;
    created_by: string;
    created_at: number;
    started_at: number | null;
    ended_at: number | null;
  };
  run_specs: {
    run_num: number;
    /** The team's as it was when the run was created. */
    spec: Json;
  };
  run_steps: {
    num: Generated<number>;
    run_num: number;
    step_key: string;
    member_id: string;
    kind: MemberKind;
    depends_on: Json;
    when: StepCondition;
    prompt: string;
    /** Null: none. */
    input: Json | null;
    /** What somebody gave it when it was resumed, for its next attempt. */
    answer: Json | null;
    timeout_seconds: number | null;
    max_attempts: number;
    /** Not of the run's spec. */
    added: Bool;
    status: StepStatus;
    waits_for: number;
    spoiled: Bool;
    attempt: number;
    tries: number;
    launched: Bool;
    output: Json | null;
    error_text: string | null;
    started_at: number | null;
    ended_at: number | null;
  };
  /** `step_num` depends on `needs_num`. */
  run_edges: { run_num: number; step_num: number; needs_num: number };
  /** Each attempt of a step, and each round of a leader, that was given to an agent. */
  run_attempts: {
    num: Generated<number>;
    run_num: number;
    /** Empty: a round of the leader. */
    step_key: string;
    /** Of the step, or the leader's round; unique within the run's attempt. */
    attempt: number;
    run_attempt: number;
    member_id: string;
    agent_id: string;
    /** Null before the agent's process, or turn, was begun. */
    session_id: string | null;
    prompt_id: string | null;
    /** Nothing that comes of it counts any more. */
    over: Bool;
    created_at: number;
    started_at: number | null;
    ended_at: number | null;
  };
  /** What `GET …/runs/{run_id}/events` tells. */
  run_events: {
    id: Generated<number>;
    run_num: number;
    ts: number;
    type: string;
    data: Json;
  };
  messages: {
    /** The message's id. */
    num: Generated<number>;
    team_num: number;
    task_num: number;
    /** The run that it was delivered in; null: it waits for the task's next one. */
    run_num: number | null;
    from_actor_id: string;
    route: 'broadcast' | 'to_leader' | 'to_member';
    to_actor_id: string | null;
    payload: Json;
    /** What of the payload can be searched. */
    text: string;
    reply_to: number | null;
    /** The message that its thread began with; null: itself. */
    thread: number | null;
    created_at: number;
  };
  mail: {
    /** The message's id. */
    num: Generated<number>;
    team_num: number;
    run_num: number;
    /** The run's attempt that it belongs to. */
    run_attempt: number;
    from_actor_id: string;
    to_actor_id: string;
    payload: Json;
    status: 'pending' | 'delivered' | 'acknowledged' | 'dead_letter';
    reason: string | null;
    /** The sender's key, and what it stood for. */
    idempotency_key: string | null;
    request_hash: Uint8Array | null;
    message_num: number | null;
    /** How many messages led to it, each because of the one before. */
    hops: number;
    /** The prompt that its receiver was woken with. */
    prompt_id: string | null;
    /** It was named in the prompt after that one. */
    reminded: Bool;
    created_at: number;
    delivered_at: number | null;
    acknowledged_at: number | null;
  };
  triggers: {
    num: Generated<number>;
    id: string;
    team_num: number;
    run_num: number;
    /** The run's attempt that it belongs to. */
    run_attempt: number;
    actor_id: string;
    /** `at`: null for the others, Unix ms. */
    at: number | null;
    every_seconds: number | null;
    cron: string | null;
    timezone: string | null;
    payload: Json;
    /** Of the mail that it sends. */
    hops: number;
    next_at: number;
    last_at: number | null;
    fired: number;
    created_by: string;
    created_at: number;
  };

  /** Committed byte offsets: one row per session and stream. */
  spools: {
    session_num: number;
    /** 1 stdout, 2 stderr. */
    stream: number;
    offset: number;
    /** Position in the file = offset - base; moves when a spool was found truncated. */
    base: Generated<number>;
    /** Last ≤ 64 committed bytes. */
    tail: Uint8Array;
    /** Bytes of output up to `offset`, where others are frames or secrets were taken out; null: as many. */
    output: Generated<number | null>;
  };
  /** The head of each agent's log; apart from `agents` because every batch of output moves it. */
  heads: {
    agent_num: number;
    last_seq: number;
    /** Oldest event that is kept; last_seq + 1 when none is. */
    first_seq: number;
    /** Bytes of kept events, rows and segments. */
    bytes: number;
  };
  /** Recent events; older ones live in segments. */
  events: {
    id: Generated<number>;
    agent_num: number;
    seq: number;
    ts: number;
    /** 1 output, 2 status, 3 acp_event, 4 error. */
    type: number;
    session_num: number | null;
    /** Output: 1 stdout, 2 stderr. */
    stream: number | null;
    /** Output: position in the stream. */
    offset: number | null;
    /** Output: 1 the line goes on, 2 the bytes are not UTF-8. */
    flags: number | null;
    /** Output: raw bytes. Else the frame's further fields as JSON. */
    data: Uint8Array;
  };
  segments: {
    id: Generated<number>;
    agent_num: number;
    first_seq: number;
    last_seq: number;
    first_ts: number;
    last_ts: number;
    /** File name below `{data_dir}/log`. */
    path: string;
    bytes: number;
    /** Block index, see `events/segment.ts`. */
    blocks: Uint8Array;
    /** 1 when the rows that it stands for are deleted. */
    swept: Generated<Bool>;
  };
  /** Logs of deleted agents, until their rows and files are gone. */
  log_drops: { agent_num: number };
  /** What `/api/events` tells: a record as it was after a change. Kept 24 hours. */
  feed: {
    id: Generated<number>;
    ts: number;
    kind: string;
    /** Who may see it besides root. */
    owner_id: string;
    /** Whose humans may see it too. */
    team_num: number | null;
    /** The agent that it is about; null: none. */
    agent_id: string | null;
    record: Json;
  };

  facts: { id: Generated<number>; ts: number; kind: string; ref: string; payload: Json };
  fact_cursors: { consumer: string; fact_id: number };
  outbox: {
    id: Generated<number>;
    node_id: string;
    session_id: string;
    kind: string;
    payload: Json;
    created_at: number;
    attempts: number;
    next_at: number;
  };
  timers: { kind: string; ref: string; due_at: number; payload: Json };

  /** Registered remote nodes; the Main Node has no row. */
  nodes: {
    id: string;
    name: string;
    /** `https://<host>:<port>` */
    grpc_target: string;
    tls_server_name: string | null;
    default_worktree_root: string | null;
    /** The disk that answered under this id first; another one is another node. */
    disk_id: string | null;
    /** Number of the newest link session; never goes back, also not over a deletion. */
    epoch: number;
    joined_at: number | null;
    last_seen_at: number | null;
    version: string | null;
    created_at: number;
    updated_at: number;
  };
  /** Ids of agents and sessions that a node may still have, and that must not come back. */
  forgotten: { id: string; agent_id: string; node_id: string; created_at: number };
  bootstrap_tokens: {
    id: string;
    created_at: number;
    expires_at: number;
    spent_at: number | null;
    /** The node that joined with it. */
    spent_by: string | null;
  };

  push_keys: {
    /** Always 1. */
    id: number;
    /** An uncompressed point of P-256, base64url, as browsers take it. */
    public_key: string;
    /** The private half, sealed. */
    sealed: Uint8Array;
    created_at: number;
  };
  push_subscriptions: {
    num: Generated<number>;
    id: string;
    user_id: string;
    /** The token that it was made with: it ends with that one, unless that one only grows old. */
    token_id: string;
    /** A secret: whoever has it and the plane's key can send to the device. */
    endpoint: string;
    /** The device's public key and secret, base64url. */
    p256dh: string;
    auth: string;
    /** The plane's key that it was made for. */
    public_key: string;
    user_agent: string | null;
    kinds: Json;
    with_commands: Bool;
    of_others: Bool;
    status: 'active' | 'expired';
    /** In a row. */
    failures: Generated<number>;
    last_error: string | null;
    last_success_at: number | null;
    /** Nothing is sent before. */
    retry_at: number | null;
    created_at: number;
  };
  push_messages: {
    num: Generated<number>;
    subscription_num: number;
    tag: string;
    /** The fact that it tells; another one when the message was replaced. */
    fact_id: number;
    /** A `PushMessage`. */
    message: Json;
    state: 'pending' | 'sent';
    attempts: number;
    created_at: number;
    /** Not sent, and not remembered, after that. */
    expires_at: number;
    sent_at: number | null;
  };
}
