/** Runs of teams and their steps. */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
import { agentStatuses } from '../domain/agent.ts';
import { problems } from '../domain/problem.ts';
import { runStatuses, stepStatuses } from '../domain/run.ts';
import { stepConditions } from '../domain/team.ts';
import { bounded, id, list, pageQuery, position, time } from './fields.ts';
import { route } from './route.ts';
import { anyJson, stepFields, stepKey } from './team-spec.ts';
import { specRecord } from './teams.ts';

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
    attempt: z.int().meta({ description: 'Raised by a restart.' }),
    version: z.int(),
    attention: z
      .string()
      .nullable()
      .meta({ description: "What wants a human's eye although the run goes on." }),
    created_by: id,
    created_at: time,
    started_at: time.nullable(),
    ended_at: time.nullable(),
  })
  .meta({ id: 'Run' });

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
    error_text: z.string().nullable(),
    attempt: z.int(),
    max_attempts: z.int(),
    timeout_seconds: z.int().nullable(),
    agent_id: id.nullable().meta({ description: 'The agent that the present attempt was given to.' }),
    started_at: time.nullable(),
    ended_at: time.nullable(),
  })
  .meta({ id: 'Step' });

const runMember = z
  .object({
    actor_id: z.string(),
    member_id: z.string().nullable(),
    role: z.enum(['leader', 'worker', 'human']),
    agent_id: id.nullable(),
    node_id: z.string().nullable(),
    status: z.enum(agentStatuses).nullable().meta({ description: "The agent's." }),
    pending_messages: z.int().meta({ description: 'Not acknowledged.' }),
  })
  .meta({ id: 'RunMember' });

const errorText = z
  .string({ error: problems.errorTextRequired().message })
  .refine((text) => text.trim() !== '', { error: problems.errorTextRequired().message })
  .pipe(bounded(limits.team_text_chars_max));
const reason = bounded(limits.team_text_chars_max).refine((text) => text.trim() !== '', {
  error: 'is required',
});
const output = z.object({ output: anyJson.optional() });

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
    summary: "A team's runs, newest first",
    query: z.object({ ...pageQuery, status: z.enum(runStatuses).optional() }),
    answers: { 200: list(runRecord) },
    errors: ['teamNotFound'],
  }),
  createRun: route({
    ...common,
    path: ofTeam,
    summary: 'Run a team',
    description:
      'With the definition as it is now. Makes a task for it, named by `input.title` where that is text.',
    body: z.object({
      input: z.record(z.string(), z.unknown(), { error: 'must be an object' }).default({}),
    }),
    unknown_fields: 'ignored',
    answers: { 201: runRecord },
    errors: ['teamNotFound'],
  }),
  getRun: route({
    method: 'GET',
    path: one,
    action: 'team.read',
    tag: 'Runs',
    summary: 'One run',
    answers: runAnswer,
    errors: runErrors,
  }),
  findRun: route({
    method: 'GET',
    path: '/api/teams/runs/{run_id}',
    action: 'team.read',
    tag: 'Runs',
    summary: 'One run, whatever its team',
    answers: runAnswer,
    errors: ['runNotFound'],
  }),
  listRunMembers: route({
    method: 'GET',
    path: '/api/teams/runs/{run_id}/members',
    action: 'team.read',
    tag: 'Runs',
    summary: 'Who takes part in a run',
    description: 'Without a leader the first member stands in `leader`, with the role `worker`.',
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
    summary: 'End a run, and whatever of it goes on',
    answers: runAnswer,
    errors: runErrors,
  }),
  resumeRun: route({
    ...common,
    path: `${one}/resume`,
    summary: 'Go on with a failed, cancelled or waiting run, from what did not complete',
    answers: runAnswer,
    errors: [...runErrors, 'runCompleted'],
  }),
  restartRun: route({
    ...common,
    path: `${one}/restart`,
    summary: 'Do the whole run again',
    description: 'Its next attempt. What goes on of this one is ended; steps that were added are gone.',
    answers: runAnswer,
    errors: runErrors,
  }),
  completeRun: route({
    ...common,
    path: `${one}/complete`,
    summary: 'Say that a run is done, with its output',
    description: 'Whatever of it goes on is ended.',
    body: output,
    unknown_fields: 'ignored',
    answers: runAnswer,
    errors: runErrors,
  }),
  failRun: route({
    ...common,
    path: `${one}/fail`,
    summary: 'Say that a run has failed',
    description: 'Whatever of it goes on is ended.',
    body: z.object({ error_text: errorText }),
    unknown_fields: 'ignored',
    answers: runAnswer,
    errors: [...runErrors, 'errorTextRequired'],
  }),
  listSteps: route({
    method: 'GET',
    path: `${one}/steps`,
    action: 'team.read',
    tag: 'Runs',
    summary: "A run's steps, in the order in which they were defined or added",
    answers: { 200: z.array(stepRecord) },
    errors: runErrors,
  }),
  addStep: route({
    ...common,
    path: `${one}/steps`,
    summary: 'Add a step to a run that is not over',
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
      'tooManySteps',
    ],
  }),
  startStep: route({
    ...common,
    path: `${step}/start`,
    summary: 'Begin a step of a member that is driven from outside',
    description: 'Only a step that is `ready`; else 409 `step is <status>`, also below.',
    answers: stepAnswer,
    errors: stepErrors,
  }),
  completeStep: route({
    ...common,
    path: `${step}/complete`,
    summary: 'Say that a step is done, with its output',
    description: 'Of one that is ready, running or waits for input. An attempt that goes on is ended.',
    body: output,
    unknown_fields: 'ignored',
    answers: stepAnswer,
    errors: stepErrors,
  }),
  failStep: route({
    ...common,
    path: `${step}/fail`,
    summary: 'Say that a step has failed',
    description: 'Of one that is ready, running or waits for input. It is not tried again.',
    body: z.object({ error_text: errorText }),
    unknown_fields: 'ignored',
    answers: stepAnswer,
    errors: [...stepErrors, 'errorTextRequired'],
  }),
  requireStepInput: route({
    ...common,
    path: `${step}/input-required`,
    summary: 'Say that a step waits for somebody',
    body: z.object({ reason }),
    unknown_fields: 'ignored',
    answers: stepAnswer,
    errors: stepErrors,
  }),
  resumeStep: route({
    ...common,
    path: `${step}/resume`,
    summary: 'Give a step what it waits for',
    description: 'An agent gets `input` with a new attempt; an outside member goes on.',
    body: z.object({ input: anyJson.optional() }),
    unknown_fields: 'ignored',
    answers: stepAnswer,
    errors: stepErrors,
  }),
  followRun: route({
    method: 'GET',
    path: `${one}/events`,
    action: 'team.read',
    tag: 'Events',
    summary: 'What happens to a run, from its beginning or where the client was, then live',
    description:
      'Server-Sent Events: `run` and `step` frames with the record as it is after the change, numbered, kept as long as the run.',
    query: z.object({
      after: position.optional().meta({ description: 'Like the header `Last-Event-ID`, which wins.' }),
    }),
    answers: { 200: z.looseObject({ type: z.string() }).meta({ id: 'RunEvent' }) },
    errors: [...runErrors, 'invalidLastEventId'],
    raw: 'sse',
  }),
};
