/** API of agents: their records, lifecycle and output. */
import { z } from 'zod';
import {
  bounded,
  dictionary,
  id,
  list,
  NODE_DEFAULT,
  name,
  nodeId,
  pageQuery,
  position,
  queryFlag,
  queryInteger,
  SEARCH_TEXT,
  searchText,
  time,
} from '../../api/fields.ts';
import { route } from '../../api/route.ts';
import { MIB, limits as sharedLimits } from '../../base/limits.ts';
import { showArgv } from '../../core/argv.ts';
import { eventTypes, streamNames } from '../../core/event.ts';
import { changeStatuses } from '../../core/node.ts';
import { problems } from '../../core/problem.ts';
import { cleanups, endReasons, sessionStates } from '../../core/session.ts';
import { limits } from './limits.ts';
import {
  activities,
  agentMilestones,
  agentNeeds,
  agentStatuses,
  observedAsks,
  onExits,
  pendingKinds,
  permissionModes,
  protocols,
  restartPolicies,
  runEnds,
  worktreeModes,
} from './rules.ts';

const LEFTOVERS =
  'Processes of its last session that were still running when it ended: with `on_exit: keep`, or because svc could not end them. svc does not check whether they still run. At most 50; the last command then ends with the number of the others.';

const permissionMode = z.enum(permissionModes).meta({
  description:
    '`ask`: before the first prompt of each session, svc applies the settings of the preset that make the agent ask before it acts. `agent`: the agent starts in its own mode.',
});

/** Changed files and lines. */
export const diffSize = z.object({ files: z.int(), added: z.int(), removed: z.int() });

export const agentRecord = z
  .object({
    id,
    name: z.string(),
    workdir: z.string().meta({ description: 'Absolute path on the node.' }),
    command: z
      .string()
      .meta({ description: 'Run by `/bin/sh -c`. If `argv` is set: `argv`, quoted for display.' }),
    argv: z.array(z.string()).nullable(),
    protocol: z.enum(protocols),
    preset: z.string().nullable(),
    permission_mode: permissionMode,
    asks: z.enum(observedAsks).meta({
      description:
        'Whether the agent asked before it acted in its latest session; only for agents that speak ACP. `asks`: it requested permission first. `acts`: it wrote, ran or fetched something without a request, or reports a mode in which it does. `unknown`: it has not acted yet.',
    }),
    worktree_mode: z.enum(worktreeModes),
    worktree_repo: z.string().nullable(),
    worktree_ref: z.string().nullable(),
    worktree_branch: z.string().nullable(),
    node_id: z.string(),
    owner_id: id,
    status: z.enum(agentStatuses),
    activity: z
      .enum(activities)
      .nullable()
      .meta({ description: 'What the agent is doing; null if it is not running.' }),
    stopped_by_run: z.enum(runEnds).nullable().meta({
      description:
        'The status with which its run ended, if that is what stopped it; `status` is then `cancelled`. Null if it ended on its own, or was stopped before.',
    }),
    exit_code: z.int().nullable(),
    exit_signal: z.string().nullable(),
    reason: z
      .string()
      .nullable()
      .meta({ description: `Why it failed: ${endReasons.join(', ')}.` }),
    session_id: id.nullable(),
    session_count: z.int(),
    labels: z.record(z.string(), z.string()),
    env_keys: z
      .array(z.string())
      .meta({ description: "Names of the agent's own variables; values are never returned." }),
    restart_policy: z.enum(restartPolicies),
    restart_at: time.nullable().meta({
      description:
        'When the restart policy starts it again after a failure; null if it does not. A stop cancels that.',
    }),
    team_id: id.nullable().meta({
      description: 'For an agent of a team: the team. `run_id` and `member_id` are its run and its member.',
    }),
    run_id: id.nullable(),
    member_id: z.string().nullable(),
    pending_reviews: z.int(),
    pending_elicitations: z.int(),
    pending_questions: z.int().meta({ description: 'Steps of runs that wait for an answer for this agent.' }),
    sign_in_since: time.nullable().meta({ description: 'Since when it needs a sign-in.' }),
    needs_you: z.enum(agentNeeds).nullable().meta({
      description:
        'What it waits for. `permission`: a permission review. `question`: a form, a link, or the question of its step. `sign_in`: a sign-in. Null if it waits for nothing.',
    }),
    summary: z
      .object({
        now: z.string().nullable().meta({
          description:
            'One line of text: what it does or asks, or, if it failed, the last line that it printed.',
        }),
        plan: z.object({ done: z.int(), total: z.int() }).nullable().meta({
          description: 'How many entries of its plan are completed.',
        }),
        diff: diffSize.nullable().meta({
          description:
            'Changed files and lines in its worktree, as of the end of its last turn or session. Null if it has no worktree of a repository.',
        }),
        usage: z
          .object({
            used: z.number(),
            size: z.number(),
            cost: z.object({ amount: z.number(), currency: z.string() }).nullable(),
          })
          .nullable()
          .meta({
            description:
              'Tokens in the context of the model, and the cost so far, as the agent reports them.',
          }),
      })
      .meta({
        id: 'AgentSummary',
        description:
          'The work of the agent in its latest session. Changes are published at most once a second.',
      }),
    last_seq: z
      .int()
      .meta({ description: 'The number of the newest event in the log; 0 if the log is empty.' }),
    last_event_at: time.nullable().meta({ description: 'When the newest event was written to the log.' }),
    stale_since: time
      .nullable()
      .meta({ description: 'If the node cannot be reached: the time of the last contact.' }),
    created_at: time,
    updated_at: time,
    started_at: time.nullable(),
    ended_at: time.nullable(),
    archived_at: time.nullable().meta({
      description: 'When it was archived; null if it is not. Starting an agent takes it out of the archive.',
    }),
    stdin: z.boolean(),
    on_exit: z.enum(onExits),
    leftovers: z.array(z.object({ pid: z.int(), command: z.string() })).meta({ description: LEFTOVERS }),
    cleanup: z.enum(cleanups).nullable().meta({
      description: '`proven`: the cgroup was seen empty. `swept`: two scans found no process.',
    }),
    pending: z.enum(pendingKinds).nullable().meta({
      description:
        'A request that was made while the node did not answer. svc carries it out when the node is back, unless it is withdrawn.',
    }),
  })
  .meta({ id: 'Agent' });

/** What an agent leaves on an unreachable node. */
export const leftBehindRecord = z
  .object({
    agent_id: id,
    name: z.string(),
    node_id: z.string(),
    workdir: z.string(),
    worktree_mode: z.enum(worktreeModes),
    worktree_repo: z.string().nullable(),
    worktree_branch: z.string().nullable(),
    sessions: z
      .array(z.object({ id, pid: z.int().nullable() }))
      .meta({ description: 'Sessions that may still be running.' }),
    leftovers: z.array(z.object({ pid: z.int(), command: z.string() })),
  })
  .meta({ id: 'LeftBehind', description: 'What a forgotten agent leaves on its node.' });

const seenRecord = z
  .object({
    agent_id: id,
    last_seen: z.int().meta({ description: 'The number of the last event that you have seen.' }),
  })
  .meta({ id: 'SeenMark' });

export const sessionRecord = z
  .object({
    id,
    agent_id: id,
    node_id: z.string(),
    number: z.int().meta({ description: "1 for the agent's first session." }),
    state: z.enum(sessionStates),
    pid: z.int().nullable(),
    exit_code: z.int().nullable(),
    exit_signal: z.string().nullable(),
    reason: z.enum(endReasons).nullable(),
    cleanup: z.enum(cleanups).nullable(),
    created_at: time,
    started_at: time.nullable(),
    ended_at: time.nullable(),
    stdout_bytes: z.int(),
    stderr_bytes: z.int(),
  })
  .meta({
    id: 'Session',
    description: 'One execution of an agent, from its start to the end of its last process.',
  });

export const eventRecord = z
  .looseObject({
    type: z.enum(eventTypes),
    agent_id: id,
    session_id: id.nullable(),
    seq: z.int(),
    ts: z.number().meta({ description: 'Unix seconds.' }),
  })
  .meta({
    id: 'Event',
    description: "One numbered entry of an agent's log; further fields depend on `type`.",
  });

const changedFile = z
  .object({
    path: z.string(),
    from: z.string().nullable().meta({ description: 'Old path of a rename.' }),
    status: z.enum(changeStatuses),
    additions: z.int().nullable().meta({ description: 'Null for binary files.' }),
    deletions: z.int().nullable().meta({ description: 'Null for binary files.' }),
    version: z.string().nullable().meta({
      description:
        'Opaque. Changes whenever the file does, even if its line counts stay the same. Null if the file does not exist, and from a node of an earlier release.',
    }),
  })
  .meta({ id: 'ChangedFile' });

/** A worktree that would be removed with its agent. */
const removedWorktree = z.object({
  workdir: z.string(),
  lost: z.string().nullable().meta({
    description:
      'The work in it that exists nowhere else, such as `untracked files`. Commits on its branch count too, although the branch is kept for them. Null if nothing would be lost.',
  }),
  uncommitted: z
    .array(changedFile)
    .nullable()
    .meta({
      description: `Files with uncommitted changes, at most ${limits.uncommitted_files_max}. Null if they are not known.`,
    }),
  truncated: z.boolean().meta({ description: 'Whether `uncommitted` is incomplete.' }),
});

const branchRemote = z
  .object({
    name: z.string().meta({ description: 'For example `origin`.' }),
    url: z.string().nullable().meta({
      description:
        'Its address without credentials; `git@host:path` is shown as `ssh://host/path`. Null unless it is an http, https, ssh or git address.',
    }),
    pushed: z.boolean().meta({
      description:
        'Whether the branch on the remote contains `head`, as far as the repository knows: svc does not ask the remote.',
    }),
  })
  .meta({
    id: 'BranchRemote',
    description:
      'The remote that git pushes the branch to, else `origin`, else the only one. It comes from the configuration of the repository, which agents can change.',
  });

export const changesRecord = z
  .object({
    git: z.boolean(),
    branch: z.string().nullable(),
    base: z.string().nullable(),
    head: z.string().nullable(),
    remote: branchRemote.nullable().meta({
      description:
        'The remote of the branch. Null for an agent without its own worktree, without such a remote, and from a node of an earlier release.',
    }),
    files: z.array(changedFile),
    truncated: z.boolean(),
  })
  .meta({ id: 'Changes' });

export const fileChangeRecord = changedFile
  .extend({
    diff: z.string().meta({ description: 'Unified diff; empty for binary files.' }),
    truncated: z.boolean(),
  })
  .meta({ id: 'FileChange' });

export const foundFilesRecord = z
  .object({
    git: z.boolean(),
    paths: z.array(z.string()).meta({ description: 'Relative to the workdir, best match first.' }),
    truncated: z.boolean(),
  })
  .meta({ id: 'FoundFiles' });

const searchHit = z
  .object({
    seq: z.int(),
    ts: z.number(),
    session_id: id.nullable(),
    stream: z.enum(streamNames).nullable(),
    snippet: z.string(),
  })
  .meta({ id: 'SearchHit' });

export const command = bounded(limits.command_chars_max);
export const argv = z
  .array(command)
  .min(1, { error: 'must not be empty' })
  .max(limits.argv_items_max, { error: `must have at most ${limits.argv_items_max} entries` })
  .refine((words) => words[0] !== '', { error: 'must begin with a program' });
export const envKey = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,255}$/, { error: 'must be the name of a variable' });
export const env = dictionary(envKey, bounded(sharedLimits.env_value_chars_max), sharedLimits.env_items_max);
const labels = dictionary(
  z.string().regex(/^[A-Za-z0-9._/-]{1,64}$/, {
    error: 'must be 1 to 64 characters: letters, digits, ".", "_", "/" and "-"',
  }),
  bounded(sharedLimits.label_chars_max),
  limits.label_items_max,
);
const optionalText = z.string().nullable().default(null);

/** Whether a body has at most one command. Records have both: there, `command` shows `argv`. */
export function hasOneCommand(body: {
  command?: string | null | undefined;
  argv?: string[] | null | undefined;
}) {
  return !body.command?.trim() || !body.argv || body.command === showArgv(body.argv);
}
export const ONE_COMMAND = { error: 'must not be given together with argv', path: ['command'] };

export const createAgentBody = z
  .object({
    name,
    command: command.nullable().default(null).meta({ description: 'A shell command, run by `/bin/sh -c`.' }),
    argv: argv
      .nullable()
      .default(null)
      .meta({ description: 'A program and its arguments, run without a shell.' }),
    preset: bounded(sharedLimits.preset_id_chars_max).nullable().default(null).meta({
      description:
        'The id of a preset (see `GET /api/presets`). It sets variables, and the command and protocol if you give none.',
    }),
    permission_mode: permissionMode.default('ask'),
    workdir: optionalText.meta({ description: 'Absolute path inside the safe paths.' }),
    worktree_mode: z.enum(worktreeModes).optional().meta({
      description: 'Default: `create_worktree` if there is a `worktree_repo`, otherwise `use_existing`.',
    }),
    worktree_repo: optionalText.meta({
      description: 'Git repository for `create_worktree`; without one, the agent gets an empty folder.',
    }),
    worktree_ref: optionalText.meta({ description: 'The commit where the branch starts; default: `HEAD`.' }),
    node_id: nodeId.optional().meta({ description: `The node that executes the agent. ${NODE_DEFAULT}` }),
    env: env.default({}).meta({
      description:
        "The agent's own variables. Values are never returned, and are redacted in its events (see `events.redact_env`).",
    }),
    protocol: z.enum(protocols).default('auto').meta({
      description:
        '`acp`: the agent speaks the Agent Client Protocol on stdin and stdout. `auto`: the protocol of the preset, otherwise `plain`; svc never probes the program.',
    }),
    labels: labels.default({}),
    restart_policy: z.enum(restartPolicies).default('never'),
    stdin: z
      .boolean()
      .default(false)
      .meta({ description: 'Keep stdin open; otherwise stdin is `/dev/null`.' }),
    on_exit: z.enum(onExits).default('kill').meta({
      description: 'What to do with processes that the command leaves behind.',
    }),
    prompt: bounded(sharedLimits.prompt_chars_max)
      .nullable()
      .default(null)
      .meta({ description: 'The first prompt, for an agent that speaks ACP.' }),
    start: z.boolean().default(false).meta({ description: 'Start the agent immediately.' }),
  })
  .refine((body) => body.command?.trim() || body.argv || body.preset, {
    error: problems.commandRequired().message,
  })
  .refine(hasOneCommand, ONE_COMMAND)
  .meta({
    id: 'CreateAgent',
    examples: [{ name: 'hello', workdir: '/path/inside/the/safe/paths', command: 'echo hello', start: true }],
  });

const labelFilter = z
  .union([z.string(), z.array(z.string())])
  .transform((value) => [value].flat())
  .refine((pairs) => pairs.length <= limits.label_items_max, {
    error: `must be given at most ${limits.label_items_max} times`,
  })
  .refine((pairs) => pairs.every((pair) => pair.indexOf('=') > 0), { error: 'must be <name>=<value>' })
  .meta({
    description: '`<name>=<value>`. If given several times, agents must have all of these labels.',
    wire: { type: 'array', items: { type: 'string' } },
  });

const streamQuery = {
  after: position
    .optional()
    .meta({ description: 'Like the header `Last-Event-ID`, which takes precedence.' }),
};

const one = '/api/agents/{agent_id}' as const;

export const agentRoutes = {
  listAgents: route({
    method: 'GET',
    path: '/api/agents',
    action: 'agents.list',
    tag: 'Agents',
    summary: 'List agents, newest first',
    description: `Root sees all agents; other users see their own and those of their teams. An agent must match all given filters. A plain array has at most the newest ${sharedLimits.plain_list_items_max} agents; if there are more, \`X-Next-Cursor\` has the cursor of the next page.`,
    query: z.object({
      ...pageQuery,
      status: z.enum(agentStatuses).optional(),
      node_id: z.string().optional(),
      name: z.string().optional().meta({ description: 'Only agents with exactly this name.' }),
      label: labelFilter.optional(),
      owner: z.string().optional().meta({ description: 'A username, or the id of a user.' }),
      team_id: z.string().optional(),
      run_id: z.string().optional(),
      repo: z.string().optional().meta({ description: 'Only agents with this `worktree_repo`.' }),
      archived: queryFlag.optional().meta({
        description: '`true`: only archived agents. `false`: only the others. Default: both.',
      }),
      q: bounded(sharedLimits.search_chars_max).optional().meta({
        description:
          'Only agents with all of these words in their id, name, command, workdir or labels. Case does not matter.',
      }),
    }),
    answer_headers: {
      'X-Next-Cursor': 'If a plain array is incomplete: the cursor of the next page.',
    },
    answers: { 200: list(agentRecord) },
  }),
  listSeen: route({
    method: 'GET',
    path: '/api/agents/seen',
    action: 'agents.list',
    tag: 'Agents',
    summary: 'List how far you have read the logs of agents',
    description:
      'An agent has unread events if its `last_seq` is greater than your `last_seen`. Agents of which you have seen nothing are left out. Only you see your marks.',
    query: z.object(pageQuery),
    answers: { 200: list(seenRecord) },
  }),
  createAgent: route({
    method: 'POST',
    path: '/api/agents',
    action: 'agents.create',
    tag: 'Agents',
    summary: 'Create an agent',
    description:
      'Checks the workdir, or creates the worktree, before it responds. Needs `command`, `argv` or `preset`.',
    query: z.object({
      replace: queryFlag.optional().meta({
        description:
          "First delete the caller's other agents with this name, except archived ones and those of teams. Worktrees with unsaved work are kept. 409 if one of these agents is running.",
      }),
    }),
    body: createAgentBody,
    unknown_fields: 'ignored',
    answers: { 201: agentRecord },
    answer_headers: { 'X-Warning': 'Names the other agents of the owner that have the same name.' },
    errors: [
      'agentRunning',
      'nameRequired',
      'commandRequired',
      'workdirRequired',
      'workdirNotAbsolute',
      'workdirNotSafe',
      'workdirMissing',
      'repoNotSafe',
      'promptNeedsAcp',
      'nodeNotFound',
      'noLocalNode',
      'nodeUnreachable',
      'agentsStopping',
      'diskSpace',
      'processNotStarted',
    ],
    idempotent: true,
  }),
  getAgent: route({
    method: 'GET',
    path: one,
    action: 'agent.read',
    tag: 'Agents',
    summary: 'Get an agent',
    description:
      'With `wait` and `until`, responds when the agent reaches that state, when it has ended, or when the time is up. The response is the record at that time.',
    query: z
      .object({
        wait: queryInteger(0, limits.agent_wait_s_max)
          .optional()
          .meta({ description: 'Maximum number of seconds to wait.' }),
        until: z.enum(agentMilestones).optional().meta({
          description:
            '`ended`: completed, failed or cancelled. `idle`: its `activity`. `needs_you`: its `activity`, or its field `needs_you` is set.',
        }),
      })
      .refine(({ wait, until }) => (wait === undefined) === (until === undefined), {
        error: 'must be given together with until',
        path: ['wait'],
      }),
    answers: { 200: agentRecord },
    errors: ['agentNotFound', 'tooManyAgentWaits'],
  }),
  updateAgent: route({
    method: 'PATCH',
    path: one,
    action: 'agent.change',
    tag: 'Agents',
    summary: 'Update an agent',
    description:
      'You can change the name and labels at any time, and everything else only while the agent is not running. Archiving an agent deletes nothing: the CLI and the web UI leave it out of their lists until it is started again.',
    body: z
      .object({
        name: name.optional(),
        labels: labels.optional(),
        command: command.refine((text) => text.trim() !== '', { error: 'is required' }).optional(),
        argv: argv.optional(),
        env: env.optional(),
        restart_policy: z.enum(restartPolicies).optional(),
        permission_mode: permissionMode.optional(),
        archived: z.boolean().optional(),
      })
      .refine(hasOneCommand, ONE_COMMAND),
    unknown_fields: 'ignored',
    answers: { 200: agentRecord },
    errors: ['agentNotFound', 'agentRunning'],
  }),
  deleteAgent: route({
    method: 'DELETE',
    path: one,
    action: 'agent.delete',
    tag: 'Agents',
    summary: 'Delete an agent',
    description:
      'A worktree with uncommitted or unpushed work is kept; the response is then 200 and names the worktree, which `GET /api/worktrees` lists from then on. It is also 200 if processes of the last session were still running when it ended (`leftovers`). With `forget`, root can delete the record of an agent whose machine is gone, without contacting the node; the response lists what stays on the machine. If the node comes back, svc ends the sessions of the agent there.',
    query: z.object({
      force: queryFlag.optional().meta({ description: 'Stop the agent first if it is running.' }),
      delete_worktree: queryFlag
        .optional()
        .meta({ description: 'Delete the worktree even if it has unsaved work.' }),
      forget: queryFlag
        .optional()
        .meta({ description: 'Delete only the record. The node must be unreachable. Root only.' }),
      dry_run: queryFlag
        .optional()
        .meta({ description: 'Only report what would happen, with 200 instead of 204.' }),
    }),
    answers: {
      204: null,
      200: z
        .object({
          id,
          worktree_kept: z.object({ workdir: z.string(), reason: z.string() }).optional(),
          worktree_removed: removedWorktree
            .optional()
            .meta({ description: 'With `dry_run`, if the worktree would be removed.' }),
          branch_kept: z
            .object({ branch: z.string(), reason: z.string() })
            .optional()
            .meta({ description: 'The branch, if only the worktree was removed.' }),
          leftovers: z
            .array(z.object({ pid: z.int(), command: z.string() }))
            .optional()
            .meta({
              description: LEFTOVERS,
            }),
          left_behind: leftBehindRecord.optional().meta({ description: 'With `forget`.' }),
        })
        .meta({ id: 'AgentDeleted' }),
    },
    errors: [
      'agentNotFound',
      'agentRunning',
      'nodeAnswers',
      'rootRequired',
      'nodeUnreachable',
      'nodeTooOld',
      'tooManyFolderJobs',
    ],
  }),
  startAgent: route({
    method: 'POST',
    path: `${one}/start`,
    action: 'agent.drive',
    tag: 'Agents',
    summary: 'Start an agent',
    description: 'Responds when the process runs or has failed; the record shows which.',
    answers: { 200: agentRecord },
    errors: [
      'agentNotFound',
      'agentAlreadyRunning',
      'agentBeingDeleted',
      'agentsStopping',
      'noLocalNode',
      'diskSpace',
      'processNotStarted',
      'nodeUnreachable',
      'internalGrpcUnavailable',
    ],
    kept: true,
    idempotent: true,
  }),
  stopAgent: route({
    method: 'POST',
    path: `${one}/stop`,
    action: 'agent.drive',
    tag: 'Agents',
    summary: 'Stop an agent and everything that it started',
    description:
      'Sends SIGTERM, and SIGKILL after the grace period. Responds when the whole process tree is gone. If the restart policy has scheduled a restart (`restart_at`), cancels that instead.',
    body: z.object({ grace_seconds: graceSeconds() }),
    unknown_fields: 'ignored',
    answers: { 200: agentRecord },
    errors: [
      'agentNotFound',
      'agentNotRunning',
      'agentProcessesSurvived',
      'nodeUnreachable',
      'internalGrpcUnavailable',
    ],
    kept: true,
  }),
  stopAllAgents: route({
    method: 'POST',
    path: '/api/admin/agents/stop',
    action: 'agents.stop_all',
    tag: 'Agents',
    summary: 'Stop all agents, before the service stops',
    description: `Stops all agents, also those of runs and on other nodes, and cancels the restarts that restart policies have scheduled. No agent starts while the request runs. If all agents have stopped, none starts for ${limits.start_pause_ms / 1000} seconds after it, so that you can stop the service: a start gets 503 \`agents_stopping\`, and runs and restart policies wait.`,
    body: z.object({ grace_seconds: graceSeconds() }),
    unknown_fields: 'ignored',
    answers: {
      200: z
        .object({
          stopped: z
            .int()
            .meta({ description: 'How many agents were stopped, including restarts that were cancelled.' }),
          still_running: z
            .array(z.object({ agent_id: id, error: z.string() }))
            .meta({ description: 'The agents that could not be stopped, with the reason.' }),
        })
        .meta({ id: 'AgentsStopped' }),
    },
  }),
  restartAgent: route({
    method: 'POST',
    path: `${one}/restart`,
    action: 'agent.drive',
    tag: 'Agents',
    summary: 'Stop an agent if it is running, and start it',
    body: z.object({ grace_seconds: graceSeconds() }),
    unknown_fields: 'ignored',
    answers: { 200: agentRecord },
    errors: [
      'agentNotFound',
      'agentsStopping',
      'agentProcessesSurvived',
      'diskSpace',
      'processNotStarted',
      'nodeUnreachable',
      'internalGrpcUnavailable',
    ],
    kept: true,
    idempotent: true,
  }),
  withdrawPending: route({
    method: 'DELETE',
    path: `${one}/pending`,
    action: 'agent.drive',
    tag: 'Agents',
    summary: "Withdraw a request that waits for the agent's node",
    description:
      'Withdraws the start, stop or restart that the record shows as `pending`. If nothing is pending, nothing changes.',
    answers: { 204: null },
    errors: ['agentNotFound'],
  }),
  sendInput: route({
    method: 'POST',
    path: `${one}/input`,
    action: 'agent.drive',
    tag: 'Agents',
    summary: "Write to an agent's stdin",
    body: z
      .object({
        data: z.string().default(''),
        eof: z.boolean().default(false).meta({ description: 'Close stdin after the data.' }),
      })
      .refine((body) => body.data !== '' || body.eof, { error: 'is required', path: ['data'] }),
    unknown_fields: 'ignored',
    answers: { 200: agentRecord },
    errors: [
      'agentNotFound',
      'agentNotRunning',
      'agentNoStdin',
      'agentSpeaksAcp',
      'stdinLost',
      'nodeUnreachable',
    ],
    idempotent: true,
  }),
  markSeen: route({
    method: 'PUT',
    path: `${one}/seen`,
    action: 'agent.mark_seen',
    tag: 'Agents',
    summary: "Mark events of an agent's log as seen",
    description:
      'Marks the events up to `seq` as seen by you, or up to the last event if there are fewer. A mark never goes down.',
    body: z.object({
      seq: z
        .int({ error: 'must be an integer' })
        .min(0, { error: 'must be at least 0' })
        .meta({ description: 'The number of the last event that you have seen.' }),
    }),
    unknown_fields: 'ignored',
    answers: { 200: seenRecord },
    errors: ['agentNotFound'],
  }),
  listSessions: route({
    method: 'GET',
    path: `${one}/sessions`,
    action: 'agent.read',
    tag: 'Agents',
    summary: "List an agent's sessions, newest first",
    query: z.object(pageQuery),
    answers: { 200: list(sessionRecord) },
    errors: ['agentNotFound'],
  }),
  getOutput: route({
    method: 'GET',
    path: `${one}/output`,
    action: 'agent.read',
    tag: 'Output',
    summary: 'Get the raw output of an agent',
    description:
      'Supports `Range`. Without `session_id`: the latest session. Without `stream`: stdout and stderr in the order in which they arrived. For an agent that speaks ACP, the messages of its conversation are left out.',
    query: z.object({
      session_id: z.string().optional(),
      stream: z.enum(streamNames).optional(),
      tail: queryInteger(0).optional().meta({ description: 'Only the last bytes.' }),
    }),
    answers: { 200: z.string().meta({ wire: { type: 'string', format: 'binary' } }) },
    errors: ['agentNotFound', 'sessionNotFound'],
    raw: 'bytes',
  }),
  getLog: route({
    method: 'GET',
    path: `${one}/log`,
    action: 'agent.read',
    tag: 'Output',
    summary: "List events of an agent's log, oldest first",
    description: `At most ${sharedLimits.page_items_max} events: the first ones, those that follow \`after\`, or those right before \`before\`. A page ends early if its events are large together. \`next_cursor\` then continues, as after every page that is not the last. For \`before\` without \`after\`, the next page has the events right before this one, also oldest first. For a plain array, \`X-Next-Cursor\` has it.`,
    query: z.object({
      ...pageQuery,
      after: queryInteger(0).optional(),
      before: queryInteger(0).optional(),
      type: z
        .string()
        .refine((text) => text.split(',').every((type) => (eventTypes as readonly string[]).includes(type)), {
          error: `must be one of: ${eventTypes.join(', ')}`,
        })
        .transform((text) => text.split(',') as (typeof eventTypes)[number][])
        .optional()
        .meta({ description: 'Event types, separated by commas.', wire: { type: 'string' } }),
    }),
    answer_headers: {
      'X-Next-Cursor': 'If a plain array is incomplete: the cursor of the next page.',
    },
    answers: { 200: list(eventRecord) },
    errors: ['agentNotFound'],
  }),
  searchLog: route({
    method: 'GET',
    path: `${one}/search`,
    action: 'agent.read',
    tag: 'Output',
    summary: 'Search what an agent wrote, said and did',
    description:
      'The index is updated in the background, so the newest events may be missing for a few seconds.',
    query: z.object({
      ...pageQuery,
      q: searchText()
        .refine((text) => text.trim() !== '', { error: 'is required' })
        .meta({ description: SEARCH_TEXT }),
    }),
    answers: { 200: list(searchHit) },
    errors: ['agentNotFound', 'tooManySearches'],
  }),
  getChanges: route({
    method: 'GET',
    path: `${one}/changes`,
    action: 'agent.read',
    tag: 'Changes',
    summary: "List what changed in an agent's workdir since its base commit",
    description: `With \`Accept: text/x-diff\`: one patch for \`git apply\` on a checkout of the base commit, including binary and new files, at most ${sharedLimits.patch_bytes_max / MIB} MiB. Paths are relative to the top of the repository. Ignored files and repositories within the workdir are left out.`,
    answers: { 200: changesRecord },
    also: 'text/x-diff',
    errors: [
      'agentNotFound',
      'baseMissing',
      'nodeUnreachable',
      'patchTooLarge',
      'tooManyFolderJobs',
      'tooManyPatches',
    ],
  }),
  getChange: route({
    method: 'GET',
    path: `${one}/changes/{path*}`,
    action: 'agent.read',
    tag: 'Changes',
    summary: 'Get the unified diff of one changed file',
    query: z.object({
      context: queryInteger(0, sharedLimits.diff_context_lines_max).optional().meta({
        description:
          'Unchanged lines around each change. Without it: as git is configured, 3 by default. Nodes that run an earlier release ignore it.',
      }),
    }),
    answers: { 200: fileChangeRecord },
    errors: ['agentNotFound', 'baseMissing', 'fileNotFound', 'nodeUnreachable', 'tooManyFolderJobs'],
  }),
  findFiles: route({
    method: 'GET',
    path: `${one}/files`,
    action: 'agent.read',
    tag: 'Changes',
    summary: "Find files in an agent's workdir by name",
    description: `Searches the files that git tracks, and new files that it does not ignore. Returns at most ${sharedLimits.found_files_max} paths that contain every word of \`q\`.`,
    query: z.object({ q: bounded(sharedLimits.search_chars_max).optional() }),
    answers: { 200: foundFilesRecord },
    errors: ['agentNotFound', 'nodeUnreachable', 'tooManyFolderJobs'],
  }),
  followAgent: route({
    method: 'GET',
    path: `${one}/events`,
    action: 'agent.read',
    tag: 'Events',
    summary: "Stream an agent's log",
    description:
      'Server-Sent Events. Each frame has `id` (the number of the event), `event` (its type) and one line of JSON. The stream starts after the given position, or with the oldest stored event, and continues with new events. `HEAD` returns only the headers.',
    query: z.object({
      ...streamQuery,
      tail: queryInteger(0)
        .optional()
        .meta({ description: 'Start this many events before the end of the log.' }),
    }),
    answers: { 200: eventRecord },
    errors: ['agentNotFound', 'invalidLastEventId'],
    raw: 'sse',
  }),
  followAll: route({
    method: 'GET',
    path: '/api/events',
    action: 'agents.list',
    tag: 'Events',
    summary: 'Stream all changes that the caller may see, without output',
    description:
      'Server-Sent Events: `agent`, `review`, `elicitation`, `run`, `step`, `task`, `message` and `node` frames with the record as it is after the change. About every 15 seconds, an `activity` frame lists the agents that wrote to their log since the last one (`agents`, each with `id` and `last_event_at`). Within a second after messages were sent, delivered or acknowledged, a `mail` frame lists whose mail changed (`mail`, each with `run_id` and `to_actor_id`). `activity` and `mail` frames are not stored, and repeat the last position; a slow client gets only the latest of each. All other frames have their own numbering and are kept for 24 hours. If the position is older, the stream begins with a `reset`: load the records again, then continue.',
    query: z.object(streamQuery),
    answers: { 200: z.looseObject({ type: z.string() }).meta({ id: 'Change' }) },
    errors: ['invalidLastEventId'],
    raw: 'sse',
  }),
};

function graceSeconds() {
  const max = limits.stop_grace_ms_max / 1000;
  const error = `must be an integer from 0 to ${max}`;
  return z
    .int({ error })
    .min(0, { error })
    .max(max, { error })
    .default(sharedLimits.stop_grace_ms / 1000);
}
