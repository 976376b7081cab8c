/**
 * Limits that several modules share: queues, pages, bodies, retries. Names end with their unit. If an operator can
 * change a value, this is the default, and `core/config.ts` has the key. Other limits are in the `limits.ts` of their
 * module, and `docs/reference/limits.md` lists them all.
 */
import { scaled } from './time-scale.ts';

export const KIB = 1024;
export const MIB = 1024 * KIB;
export const GIB = 1024 * MIB;
const DAY_MS = 24 * 60 * 60 * 1000;

/** The limits that clients need. They are a separate object, so that a browser bundle omits the rest. */
export const clientLimits = {
  /** Largest page of a list, so that one response stays small. */
  page_items_max: 200,
  /** Agents, runs of all teams, reviews or elicitations in a list without pages. */
  plain_list_items_max: 1_000,
  /** A client reconnects after this much silence: two missed heartbeats and a margin. */
  client_silence_ms: 75_000,
  /** Delays between a client's attempts to reconnect. The last one is repeated. */
  reconnect_backoff_ms: [1_000, 2_000, 4_000, 8_000, 30_000],
} as const;

export const limits = {
  ...clientLimits,
  /** Default of `limits.body_bytes_max`: largest request body. */
  body_bytes_max: 1 * MIB,
  /** Nesting of JSON in requests, so that recursion stays bounded. */
  json_depth_max: 64,
  /** Longest path in a request or configuration. */
  path_chars_max: 4_096,
  /** Longest name of an agent, team, node or token. */
  name_chars_max: 200,
  /** Bytes of a process's environment that are read, because a process can make its own as large as its address space. */
  process_environment_bytes_max: 128 * KIB,
  /** Bytes of a process's command line that are read, for the same reason. Only its first 200 characters are shown. */
  process_command_bytes_max: 4 * KIB,
  /** Longest password, because hashing costs time per character. */
  password_chars_max: 1_024,
  /** Longest search text. */
  search_chars_max: 256,
  /** Longest `Idempotency-Key`. */
  idempotency_key_chars_max: 255,
  /** How long a response is stored for its `Idempotency-Key`. */
  idempotency_keep_ms: 24 * 60 * 60 * 1000,
  /** Default of `limits.page_items_default`: page size. */
  page_items_default: 100,
  /** Default of `limits.streams_per_user`: open event streams of one user. */
  streams_per_user: 100,
  /** Default of `limits.streams_total`: open event streams of all users. */
  streams_total: 10_000,
  /** Default of `limits.requests_per_second`: for each token, or each address without a valid one. */
  requests_per_second: 50,
  /** Default of `limits.requests_burst`: requests that a token, or an address without a valid one, can send at once. */
  requests_burst: 100,
  /** Variables of one agent. */
  env_items_max: 256,
  /** Longest value of a variable. */
  env_value_chars_max: 64 * KIB,
  /** Longest id of a preset. */
  preset_id_chars_max: 64,
  /** Longest value of a label. */
  label_chars_max: 256,
  /** Default time between SIGTERM and SIGKILL. */
  stop_grace_ms: 10_000,
  /** Stored part of a browser's `User-Agent`. */
  user_agent_chars_max: 256,
  /** Steps of a team or run. */
  team_steps_max: 2_048,
  /** Longest prompt or description in a team. */
  team_text_chars_max: 64 * KIB,
  /** Output of one step. */
  step_output_bytes_max: 1 * MIB,
  /** Rows that a stream reads from the database at once. */
  follow_rows_per_read: 200,
  /** A turn that continues for this long after its cancellation is reported. */
  turn_cancel_ms: 15_000,
  /** Longest prompt. */
  prompt_chars_max: 512 * KIB,
  /** Largest ACP message that is stored in full. */
  acp_payload_bytes_max: 1 * MIB,
  /** Entries of a list that an agent announces, such as modes or commands. */
  acp_items_max: 1_000,
  /** Longest single text in the state of an ACP session. */
  acp_text_chars_max: 4 * KIB,
  /** Estimated overhead of an event in the database, for retention. */
  event_row_bytes: 48,
  /** Cached records of agents and sessions. */
  sessions_cached_max: 10_000,
  /** Default of `retention.days` and of `retention.run_agents_days`. */
  retention_days: 30,
  /** Default of `retention.bytes_per_agent`. */
  retention_bytes_per_agent: 256 * MIB,
  /** How long a request waits for a node, so that every request is answered within 2 s. */
  node_answer_ms: 1_000,
  /** A node is shown as suspect after this much silence: three missed heartbeats and a margin. */
  node_suspect_ms: scaled(15_000),
  /** Lifetime of certificates, which are renewed automatically. */
  leaf_lifetime_ms: 90 * DAY_MS,
  /** Longest host name (RFC 1035). */
  host_name_chars_max: 253,
  /** How long to wait for the first message of a link. */
  link_hello_ms: 10_000,
  /** Time limit for opening a connection. */
  link_connect_ms: 10_000,
  /** A connection is closed after being without traffic for this long. Pings are traffic. */
  link_idle_ms: 60_000,
  /** Connections to one listener that have carried a call with a valid token of an actor. */
  actor_connections_max: 128,
  /** Of those, connections with the same token. */
  actor_connections_per_token: 16,
  /** Open files that are assumed to be possible where the system does not tell. */
  descriptors_assumed: 16_000,
  /** Connections to an internal listener whose peer has proven nothing so far: no certificate, and no call with a valid token. */
  anonymous_connections_max: 1_000,
  /** The most of these connections as a share of the possible open files. */
  anonymous_connections_share: 0.05,
  /** Such a connection to a gRPC listener is closed after this time, unless a call is in progress. */
  anonymous_connection_ms: 15_000,
  /** Streams of one actor's connection. */
  actor_streams_max: 2,
  /** Calls with the token of one actor at the same time. */
  actor_calls_per_token: 16,
  /** Of these, calls that wait for mail. */
  actor_receives_per_token: 4,
  /** Longest token in a call. */
  link_token_chars_max: 4 * KIB,
  /** Shortest bootstrap token, because it can be guessed offline. */
  bootstrap_token_chars_min: 16,
  /** Longest id of an actor. */
  actor_id_chars_max: 256,
  /** Stored part of a program's version. */
  probe_version_chars_max: 120,
  /** Longest path that the system accepts. */
  path_bytes_max: 4_095,
  /** Time limit of a checkout, which can be large. */
  git_checkout_timeout_ms: 10 * 60 * 1000,
  /** Unchanged lines around each change that a diff can show. */
  diff_context_lines_max: 1_000,
  /** Changed files that one response lists. */
  changed_files_max: 2_000,
  /** Processes that a session left behind and that are listed. More are only counted. */
  leftovers_max: 50,
  /** Command of a process that a session left behind. */
  leftover_command_bytes_max: 256,
  /** Error text of a session fact, and its details. */
  fact_text_bytes_max: 1 * KIB,
  /** Largest patch of an agent's changes. */
  patch_bytes_max: 8 * MIB,
  /** Longest URL of a git remote that is shown. */
  remote_url_chars_max: 2_048,
  /** Longest name of a git remote that is shown. */
  remote_name_chars_max: 200,
  /** Size of the chunks in which a patch is sent. */
  patch_piece_bytes: 256 * KIB,
  /** Files that a search by name returns. */
  found_files_max: 50,
  /** Repositories that a node lists. */
  found_repositories_max: 100,
  /** Repositories that were used last and are examined first. */
  used_repositories_max: 20,
  /** No agent starts while less disk space than this is free. */
  disk_no_start_bytes: 2 * GIB,
  /** The same threshold as a share of the disk, for small disks. */
  disk_no_start_share: 0.05,
  /** Time limit of one check of `svc doctor`. */
  doctor_wait_ms: 5_000,
  /** Size of V8's young generation in a worker thread, to keep its memory small. */
  worker_young_mib: 8,
  /** Log lines that are waiting for a slow reader. Later ones are dropped. */
  log_waiting_bytes_max: 1 * MIB,
  /** The same warning about rejected peers is logged at most once in this period. */
  refusal_log_ms: 10_000,
  /** Number of different reasons that such a warning logs in that period. */
  refusal_log_reasons_max: 8,
  /** A worker thread ends after being idle for this long. */
  worker_idle_ms: 60_000,
  /** Longest delay of a Node.js timer. */
  timer_ms_max: 2 ** 31 - 1,
  /** Runs that the CLI requests at once. */
  cli_run_page_items: 20,
  /** Work that writes to a repository, one task at a time per repository. Its jobs also take turns in `folder_work`. */
  repository_work: {
    running: 1_000,
    running_per_owner: 1_000,
    running_per_resource: 1,
    waiting: 5_000,
    waiting_per_owner: 1_000,
    waiting_per_resource: 1_000,
  },
} as const;
