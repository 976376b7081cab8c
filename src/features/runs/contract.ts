/** API of runs of teams and their steps. */
import { z } from 'zod';
import { bounded, id, list, pageQuery, position, queryFlag, shortList, time } from '../../api/fields.ts';
import { route } from '../../api/route.ts';
import { limits } from '../../base/limits.ts';
import { problems } from '../../core/problem.ts';
import { agentStatuses } from '../agents/rules.ts';
import { anyJson, stepFields, stepKey } from '../teams/contract/spec.ts';
import { specRecord } from '../teams/contract/teams.ts';
import { stepConditions } from '../teams/rules/team.ts';
import { runStatuses, stepStatuses } from './rules/run.ts';

export const runRecord = z
  .object({
    id,
    number: z.int(),
    team_id: id,
    task_id: id,
    status: z.enum(runStatuses),
    spec: specRecord,
    input: z.record(z.string(), z.unknown()),
    output: anyJson,
    error: z.string().nullable(),
    attempt: z.int().meta({ description: 'Incremented by a restart.' }),
    version: z.int().meta({ description: 'Incremented by each change of the run or its steps.' }),
    attention: z.string().nullable().meta({
      description:
        'Why a person should look at the run although it continues; several reasons are separated by `; `.',
    }),
    created_by: id,
    created_by_name: z.string().nullable().meta({ description: 'The username; null: the user was deleted.' }),
    created_at: time,
    started_at: time.nullable(),
    ended_at: time.nullable(),
  })
  .meta({ id: 'Run' });

/** Without what can be large, because the list has runs of many teams. */
const listedRun = runRecord
  .omit({ spec: true, input: true, output: true })
  .extend({
    team_name: z.string(),
    title: z.string().nullable().meta({
      description: "The first line of the input's `title`, `prompt` or `task`; null: it has none of them.",
    }),
  })
  .meta({
    id: 'ListedRun',
    description: 'A run without its `spec`, `input` and `output`, with its title and the name of its team.',
  });

const stepRecord = z
  .object({
    run_id: id,
    step_key: z.string(),
    member_id: z.string(),
    depends_on: z.array(z.string()),
    when: z.enum(stepConditions),
    prompt: z.string(),
    status: z.enum(stepStatuses),
    input: anyJson,
    output: anyJson,
    error_text: z.string().nullable().meta({
      description:
        'Why it failed or waits. For a program that failed, it ends with the last lines of its stderr.',
    }),
    attempt: z.int(),
    max_attempts: z.int(),
    timeout_seconds: z.int().nullable(),
    agent_id: id.nullable().meta({ description: 'The agent of the current attempt.' }),
    started_at: time.nullable(),
    ended_at: time.nullable(),
    waiting_since: time
      .nullable()
      .meta({ description: 'Since when it waits for an answer; `error_text` is the question.' }),
    answer: anyJson.meta({ description: 'The input of its last `resumeStep`.' }),
    answered_by: z.string().nullable().meta({
      description:
        'Who answered its last question, or completed or failed it instead: a username or an actor id. Null while it waits.',
    }),
  })
  .meta({ id: 'Step' });

const waitingStep = z
  .object({
    team_id: id,
    team_name: z.string(),
    run_id: id,
    run_number: z.int(),
    step_key: z.string(),
    member_id: z.string(),
    agent_id: id.nullable().meta({ description: 'The agent of the current attempt.' }),
    attempt: z.int(),
    question: z.string().meta({ description: 'What the step needs to know, or why its outcome is unknown.' }),
    waiting_since: time,
  })
  .meta({ id: 'WaitingStep' });

const waitingRun = z
  .object({
    team_id: id,
    team_name: z.string(),
    run_id: id,
    run_number: z.int(),
    version: z.int().meta({ description: 'The `version` of the run.' }),
    reason: z.string().meta({ description: 'Why it waits; the `error` of the run.' }),
    waiting_since: time,
  })
  .meta({ id: 'WaitingRun' });

const runMember = z
  .object({
    actor_id: z.string(),
    member_id: z.string().nullable(),
    role: z.enum(['leader', 'worker', 'human']),
    agent_id: id.nullable(),
    node_id: z.string().nullable(),
    status: z.enum(agentStatuses).nullable().meta({
      description: 'Status of the agent; `completed` if the end of a completed run stopped it.',
    }),
    pending_messages: z.int().meta({ description: 'Number of unacknowledged messages.' }),
  })
  .meta({ id: 'RunMember' });

const keptOn = { agent_id: id, node_id: z.string(), reason: z.string() };
const runDeletion = z
  .object({
    id,
    agents: z.array(id).meta({ description: 'The deleted agents, or those that would be deleted.' }),
    worktrees_kept: z.array(z.object({ ...keptOn, workdir: z.string() })),
    branches_kept: z.array(z.object({ ...keptOn, branch: z.string() })),
  })
  .meta({ id: 'RunDeletion' });

const errorText = z
  .string({ error: problems.errorTextRequired().message })
  .refine((text) => text.trim() !== '', { error: problems.errorTextRequired().message })
  .pipe(bounded(limits.team_text_chars_max));
const reason = bounded(limits.team_text_chars_max).refine((text) => text.trim() !== '', {
  error: 'is required',
});
const output = z.object({ output: anyJson.optional() });
const knownRun = z.object({
  version: z.int().optional().meta({
    description:
      "The run's `version` that the sender knows. If the run has changed since, the answer is 409 (`run_changed`).",
  }),
});
const started_at = time.nullable().optional().meta({
  description:
    "The step's `started_at` that the sender knows. If the step has been reset or started again since, the answer is 409 (`step_changed`).",
});

const ofTeam = '/api/teams/{team_id}/runs' as const;
const one = `${ofTeam}/{run_id}` as const;
const step = `${one}/steps/{step_key}` as const;
const common = { tag: 'Runs', action: 'team.work', method: 'POST', idempotent: true } as const;
const runAnswer = { 200: runRecord } as const;
const stepAnswer = { 200: stepRecord } as const;
const runErrors = ['teamNotFound', 'runNotFound'] as const;
const stepErrors = [...runErrors, 'stepNotFound'] as const;

export const runRoutes = {
  listRuns: route({
    method: 'GET',
    path: ofTeam,
    action: 'team.read',
    tag: 'Runs',
    summary: "List a team's runs, newest first",
    query: z.object({ ...pageQuery, status: z.enum(runStatuses).optional() }),
    answers: { 200: list(runRecord) },
    errors: ['teamNotFound'],
  }),
  listAllRuns: route({
    method: 'GET',
    path: '/api/teams/runs',
    action: 'teams.list',
    tag: 'Runs',
    summary: 'List the runs of all teams, newest first',
    description: `Root sees the runs of all teams; other users those of their own teams and of those that list them in \`human_members\`. A plain array has at most the newest ${limits.plain_list_items_max} runs; if there are more, \`X-Next-Cursor\` has the cursor of the next page.`,
    query: z.object({ ...pageQuery, status: z.enum(runStatuses).optional() }),
    answer_headers: {
      'X-Next-Cursor': 'If a plain array is incomplete: the cursor of the next page.',
    },
    answers: { 200: list(listedRun) },
  }),
  createRun: route({
    ...common,
    path: ofTeam,
    summary: 'Run a team',
    description:
      'Uses the current definition. Also creates a task, with `input.title` as its title if that is text.',
    body: z.object({
      input: z.record(z.string(), z.unknown(), { error: 'must be an object' }).default({}),
    }),
    unknown_fields: 'ignored',
    answers: { 201: runRecord },
    errors: ['teamNotFound', 'noLocalNode'],
  }),
  getRun: route({
    method: 'GET',
    path: one,
    action: 'team.read',
    tag: 'Runs',
    summary: 'Get a run',
    answers: runAnswer,
    errors: runErrors,
  }),
  deleteRun: route({
    method: 'DELETE',
    path: one,
    action: 'run.delete',
    tag: 'Runs',
    summary: 'Delete a run that has ended, with its agents and their worktrees',
    description:
      'Only for its creator and root; if its creator was deleted, for the creator of the team. Worktrees with unsaved work are kept, and listed by `GET /api/worktrees`. The task and its thread stay.',
    query: z.object({
      delete_worktrees: queryFlag
        .optional()
        .meta({ description: 'Delete worktrees even if they have unsaved work.' }),
      dry_run: queryFlag.optional().meta({ description: 'Only report what would happen.' }),
    }),
    answers: { 200: runDeletion },
    errors: [...runErrors, 'runNotEnded', 'runBeingDeleted', 'notAllowed', 'nodeUnreachable', 'nodeTooOld'],
  }),
  findRun: route({
    method: 'GET',
    path: '/api/teams/runs/{run_id}',
    action: 'team.read',
    tag: 'Runs',
    summary: 'Get a run without naming its team',
    answers: runAnswer,
    errors: ['runNotFound'],
  }),
  listRunMembers: route({
    method: 'GET',
    path: '/api/teams/runs/{run_id}/members',
    action: 'team.read',
    tag: 'Runs',
    summary: 'List the participants of a run',
    description: 'Without a leader, `leader` is the first member, with the role `worker`.',
    answers: {
      200: z
        .object({ run_id: id, team_id: id, leader: runMember, members: z.array(runMember) })
        .meta({ id: 'RunMembers' }),
    },
    errors: ['runNotFound'],
  }),
  cancelRun: route({
    ...common,
    path: `${one}/cancel`,
    summary: 'Cancel a run and everything in it that is still running',
    answers: runAnswer,
    errors: [...runErrors, 'runStatus'],
  }),
  resumeRun: route({
    ...common,
    path: `${one}/resume`,
    summary: 'Continue a failed, cancelled or waiting run with the steps that did not complete',
    body: knownRun,
    unknown_fields: 'ignored',
    answers: runAnswer,
    errors: [...runErrors, 'runStatus', 'runChanged', 'runCompleted', 'taskHasRun', 'runBeingDeleted'],
  }),
  restartRun: route({
    ...common,
    path: `${one}/restart`,
    summary: 'Start a run again from the beginning',
    description:
      'Starts its next attempt. Everything that the current attempt is doing is stopped, and steps that were added are removed.',
    body: knownRun,
    unknown_fields: 'ignored',
    answers: runAnswer,
    errors: [...runErrors, 'runChanged', 'taskHasRun', 'runBeingDeleted'],
  }),
  completeRun: route({
    ...common,
    path: `${one}/complete`,
    summary: 'Complete a run, with its output',
    description: 'Everything that it is doing is stopped.',
    body: output,
    unknown_fields: 'ignored',
    answers: runAnswer,
    errors: [...runErrors, 'runStatus'],
  }),
  failRun: route({
    ...common,
    path: `${one}/fail`,
    summary: 'Mark a run as failed',
    description: 'Everything that it is doing is stopped.',
    body: z.object({ error_text: errorText }),
    unknown_fields: 'ignored',
    answers: runAnswer,
    errors: [...runErrors, 'runStatus', 'errorTextRequired'],
  }),
  listWaitingSteps: route({
    method: 'GET',
    path: '/api/teams/waiting-steps',
    action: 'teams.list',
    tag: 'Runs',
    summary: 'List the steps that wait for an answer, in all runs, oldest first',
    description:
      'Root sees the steps of all teams; other users those of their own teams and of those that list them in `human_members`. Answer a step with `resumeStep`.',
    query: z.object(pageQuery),
    answers: { 200: list(waitingStep) },
  }),
  listWaitingRuns: route({
    method: 'GET',
    path: '/api/teams/waiting-runs',
    action: 'teams.list',
    tag: 'Runs',
    summary: 'List the runs that are waiting for a person, but not at any step, oldest first',
    description:
      'The leader has used its rounds, or the outcome of its round is unknown. Lists those of the same teams as `listWaitingSteps`. Continue a run with `resumeRun`, or end it.',
    query: z.object(pageQuery),
    answers: { 200: list(waitingRun) },
  }),
  listSteps: route({
    method: 'GET',
    path: `${one}/steps`,
    action: 'team.read',
    tag: 'Runs',
    summary: "List a run's steps, in the order in which they were defined or added",
    query: z.object(pageQuery),
    answers: { 200: shortList(stepRecord) },
    errors: runErrors,
  }),
  addStep: route({
    ...common,
    path: `${one}/steps`,
    summary: 'Add a step to a run that has not ended',
    body: z.object({
      step_key: stepKey,
      member_id: z
        .string({ error: problems.memberIdRequired().message })
        .min(1, { error: problems.memberIdRequired().message }),
      ...stepFields,
    }),
    unknown_fields: 'ignored',
    answers: { 201: stepRecord },
    errors: [
      ...runErrors,
      'stepKeyRequired',
      'memberIdRequired',
      'memberUndefined',
      'stepNeedsUndefined',
      'stepExists',
      'runStatus',
      'tooManySteps',
    ],
  }),
  startStep: route({
    ...common,
    path: `${step}/start`,
    summary: 'Start a step of a member without an agent',
    description:
      'The step must be `ready`. Like all commands on steps, it fails with 409 `step is <status>` in another state.',
    answers: stepAnswer,
    errors: [...stepErrors, 'stepStatus'],
  }),
  completeStep: route({
    ...common,
    path: `${step}/complete`,
    summary: 'Complete a step, with its output',
    description: 'The step must be ready, running or waiting for input. Its current attempt is stopped.',
    body: output.extend({ started_at }),
    unknown_fields: 'ignored',
    answers: stepAnswer,
    errors: [...stepErrors, 'stepStatus', 'stepChanged'],
  }),
  failStep: route({
    ...common,
    path: `${step}/fail`,
    summary: 'Mark a step as failed',
    description: 'The step must be ready, running or waiting for input. It is not retried.',
    body: z.object({ error_text: errorText, started_at }),
    unknown_fields: 'ignored',
    answers: stepAnswer,
    errors: [...stepErrors, 'stepStatus', 'stepChanged', 'errorTextRequired'],
  }),
  requireStepInput: route({
    ...common,
    path: `${step}/input-required`,
    summary: 'Make a step wait for input',
    body: z.object({ reason }),
    unknown_fields: 'ignored',
    answers: stepAnswer,
    errors: [...stepErrors, 'stepStatus'],
  }),
  resumeStep: route({
    ...common,
    path: `${step}/resume`,
    summary: 'Give a step the input that it waits for',
    description: 'An agent gets `input` in a new attempt; a member without an agent continues its attempt.',
    body: z.object({
      input: anyJson.optional(),
      waiting_since: time.optional().meta({
        description:
          "The step's `waiting_since` with the question that `input` answers. If the step waits for something else now, the answer is 409 (`step_changed`).",
      }),
    }),
    unknown_fields: 'ignored',
    answers: stepAnswer,
    errors: [...stepErrors, 'stepStatus', 'stepChanged'],
  }),
  followRun: route({
    method: 'GET',
    path: `${one}/events`,
    action: 'team.read',
    tag: 'Events',
    summary: 'Stream the events of a run',
    description:
      'Server-Sent Events: numbered `run`, `step` and `mail` frames with the record after each change, kept as long as the run. The stream starts after the given position, or with the first event, and continues with new events.',
    query: z.object({
      after: position
        .optional()
        .meta({ description: 'Like the header `Last-Event-ID`, which takes precedence.' }),
    }),
    answers: { 200: z.looseObject({ type: z.string() }).meta({ id: 'RunEvent' }) },
    errors: [...runErrors, 'invalidLastEventId'],
    raw: 'sse',
  }),
};
