/** Columns of teams, their tasks, runs and messages. */
import type { Generated } from 'kysely';
import type { RunMode, RunStatus, StepStatus } from '../../features/runs/rules/run.ts';
import type { MemberKind, StepCondition } from '../../features/teams/rules/team.ts';
import type { Bool, Json } from './columns.ts';

export interface TeamsTables {
  teams: {
    num: Generated<number>;
    id: string;
    name: string;
    /** Unique; the names of the team's tasks begin with it. */
    key: string;
    description: string;
    /** A `TeamSpec` with all defaults. */
    spec: Json;
    /** Ids of the users who have changed the definition. */
    spec_editors: Generated<Json>;
    version: number;
    /** The highest number of a deleted run. */
    deleted_run_number: Generated<number>;
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
    /** The title of the input; empty: it has none; null: an earlier program created the run. */
    title: string | null;
    output: Json | null;
    error: string | null;
    attempt: number;
    version: number;
    mode: RunMode;
    leader: 'unasked' | 'asking' | 'answered' | 'unclear';
    rounds: number;
    rounds_before: Generated<number>;
    steps_seen: number;
    /** Since when the run has needed attention; null if it does not. */
    attention_at: number | null;
    attention: string | null;
    created_by: string;
    created_at: number;
    started_at: number | null;
    ended_at: number | null;
    /** Since when the run is `input_required`; null if it is not. */
    waiting_since: number | null;
  };
  run_specs: {
    run_num: number;
    /** The team's spec when the run was created. */
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
    /** Null: the run has no input. */
    input: Json | null;
    /** The answer from a resume, for the next attempt. */
    answer: Json | null;
    /** The display name of whoever answered its last question. */
    answered_by: string | null;
    timeout_seconds: number | null;
    max_attempts: number;
    /** Added during the run, not in the run's spec. */
    added: Bool;
    status: StepStatus;
    waits_for: number;
    upstream_failed: Bool;
    attempt: number;
    tries: number;
    launched: Bool;
    output: Json | null;
    error_text: string | null;
    started_at: number | null;
    ended_at: number | null;
    /** Since when it waits for an answer; null if it does not. */
    waiting_since: number | null;
  };
  /** `step_num` depends on `needs_num`. */
  run_edges: { run_num: number; step_num: number; needs_num: number };
  /** Assignments: the attempts of steps, and the rounds of leaders, that agents are asked to do. */
  run_attempts: {
    num: Generated<number>;
    run_num: number;
    /** Empty for a round of the leader. */
    step_key: string;
    /** Attempt of the step, or number of the leader's round; unique within an attempt of the run. */
    attempt: number;
    run_attempt: number;
    member_id: string;
    agent_id: string;
    /** Null until the agent's process or turn starts. */
    session_id: string | null;
    prompt_id: string | null;
    /** It has an outcome; later ones are ignored. */
    over: Bool;
    created_at: number;
    started_at: number | null;
    ended_at: number | null;
  };
  /** The events of `GET …/runs/{run_id}/events`. */
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
    /** The run in which the message was delivered; null if it waits for the task's next run. */
    run_num: number | null;
    from_actor_id: string;
    route: 'broadcast' | 'to_leader' | 'to_member';
    to_actor_id: string | null;
    payload: Json;
    /** The searchable text of the payload. */
    text: string;
    reply_to: number | null;
    /** The first message of its thread; null if it is the first one itself. */
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
    /** The sender's idempotency key and a hash of the request. */
    idempotency_key: string | null;
    request_hash: Uint8Array | null;
    message_num: number | null;
    /** Number of messages in the chain that caused this one. */
    hops: number;
    /** The prompt that notified its receiver. */
    prompt_id: string | null;
    /** A later prompt mentioned it again. */
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
    /** For `at`, Unix milliseconds; null for other kinds. */
    at: number | null;
    every_seconds: number | null;
    cron: string | null;
    timezone: string | null;
    payload: Json;
    /** Hops of the mail that it sends. */
    hops: number;
    next_at: number;
    last_at: number | null;
    fired: number;
    created_by: string;
    created_at: number;
  };
}
