/**
 * The schema of a team definition, with defaults and error messages. Validation reports only the first error, in this
 * order: the form, field by field (members and steps one after another); unique members, reserved ids, the leader;
 * unique steps, their members, their dependencies, cycles.
 */
import { z } from 'zod';
import { bounded, NODE_DEFAULT, name, nodeId } from '../../../api/fields.ts';
import { validate } from '../../../api/validate.ts';
import { limits as sharedLimits } from '../../../base/limits.ts';
import { problems } from '../../../core/problem.ts';
import { argv, command, env, envKey, hasOneCommand, ONE_COMMAND } from '../../agents/contract.ts';
import {
  defaultWorktreeMode,
  type Protocol,
  permissionModes,
  protocols,
  worktreeModes,
} from '../../agents/rules.ts';
import { findPreset } from '../../presets/rules/catalog.ts';
import { reviewRoutes } from '../../reviews/rules.ts';
import { limits } from '../limits.ts';
import { MEMBER_ID, specFault, unique } from '../rules/spec.ts';
import { defaultMember, type SpecInput, stepConditions } from '../rules/team.ts';

const text = bounded(sharedLimits.team_text_chars_max);
const path = bounded(sharedLimits.path_chars_max).nullable().default(null);

function integer(min: number, max: number) {
  const error = `must be an integer from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

export const memberId = z
  .string({ error: ({ input }) => (input === null ? 'is required' : undefined) })
  .min(1, { error: 'is required' })
  .regex(MEMBER_ID, {
    error: 'must be 1 to 64 characters from A-Z, a-z, 0-9, ".", "_" and "-", but not "." or ".."',
  });

export const stepKey = z
  .string({ error: problems.stepKeyRequired().message })
  .refine((key) => key.trim() !== '', { error: problems.stepKeyRequired().message })
  .pipe(name)
  .refine((key) => key !== '.' && key !== '..', { error: 'must not be "." or ".."' });

const dependsOn = z
  .array(z.unknown())
  .max(limits.step_needs_max, { error: `must have at most ${limits.step_needs_max} entries` })
  .refine((keys) => keys.every((key) => typeof key === 'string' && key !== ''), {
    error: 'entries must be non-empty strings',
  })
  .transform((keys) => unique(keys as string[]))
  .meta({
    description: 'Steps that must end first.',
    wire: { type: 'array', items: { type: 'string' } },
  });

export const anyJson = z.unknown().meta({ description: 'Any JSON value.' });

/** The fields of a step except its member, for definitions and for added steps. */
export const stepFields = {
  depends_on: dependsOn.default([]),
  when: z.enum(stepConditions).default('on_success').meta({
    description: '`always`: starts when everything that it depends on has ended, whatever the outcome.',
  }),
  prompt: bounded(sharedLimits.prompt_chars_max).default('').meta({
    description: 'The work for its member; sent as a prompt to an agent that speaks ACP.',
  }),
  input: anyJson.default(null),
  timeout_seconds: integer(1, limits.step_timeout_seconds_max)
    .nullable()
    .default(null)
    .meta({ description: 'Time limit of one attempt; null: no limit.' }),
  max_attempts: integer(1, limits.step_attempts_max).default(1).meta({
    description: 'How many times the step is tried. A resumed step starts counting again.',
  }),
};

const memberAgent = z
  .object({
    command: command.nullable().default(null),
    argv: argv.nullable().default(null),
    preset: bounded(sharedLimits.preset_id_chars_max)
      .refine((id) => findPreset(id) !== null, { error: 'must be a known preset' })
      .nullable()
      .default(null),
    permission_mode: z.enum(permissionModes).default('ask'),
    protocol: z.enum(protocols).default('auto').meta({
      description:
        '`auto`: the protocol of the preset, else `plain`. A member that speaks ACP has one agent.',
    }),
    node_id: nodeId.optional().meta({ description: NODE_DEFAULT }),
    workdir: path,
    worktree_mode: z.enum(worktreeModes).optional().meta({
      description: 'Default: `create_worktree` if there is a `worktree_repo`, otherwise `use_existing`.',
    }),
    worktree_repo: path,
    env: env.default({}).meta({ description: 'Values are never returned; records name them in `env_keys`.' }),
    env_keys: z
      .array(envKey)
      .max(sharedLimits.env_items_max, { error: `must have at most ${sharedLimits.env_items_max} entries` })
      .optional()
      .meta({ description: 'Variables of the current definition that keep their value.' }),
    restart_policy: z
      .unknown()
      .refine((policy) => policy === undefined, { error: 'is not allowed for members of teams' })
      .optional(),
  })
  .refine((agent) => agent.command?.trim() || agent.argv || runsOfItself(agent.preset), {
    error: 'needs command, argv or a preset that runs one',
  })
  .refine(hasOneCommand, ONE_COMMAND)
  .transform(({ restart_policy: _, ...agent }) => ({
    ...agent,
    worktree_mode: agent.worktree_mode ?? defaultWorktreeMode(agent.worktree_repo),
    protocol: agent.protocol === 'auto' ? getProtocol(agent.preset) : agent.protocol,
  }))
  .meta({ id: 'MemberAgent', description: "How a member's agent is created, for each run." });

const member = z
  .object({
    member_id: memberId,
    description: text.default(''),
    skills: z
      .array(name)
      .max(limits.team_skills_max, { error: `must have at most ${limits.team_skills_max} entries` })
      .default([]),
    prompt: text.default('').meta({ description: 'Role instructions for its agent.' }),
    agent: memberAgent.nullable().default(null).meta({
      description: 'Null: people and programs act as this member.',
    }),
  })
  .meta({ id: 'Member' });

const step = z
  .object({
    step_key: stepKey,
    member_id: memberId.optional().meta({ description: 'Default: the leader, else the first member.' }),
    ...stepFields,
  })
  .meta({ id: 'StepSpec' });

export const teamSpec = z
  .object(
    {
      spec_version: z.literal(1, { error: 'is not supported' }).default(1),
      entrypoint: z
        .object({ type: z.literal('task', { error: 'is not supported' }) }, { error: 'must be an object' })
        .default({ type: 'task' }),
      members: z
        .array(member, { error: 'must be an array' })
        .min(1, { error: 'must not be empty' })
        .max(limits.team_members_max, { error: `must have at most ${limits.team_members_max} entries` }),
      leader_member_id: z.string().nullable().default(null).meta({
        description:
          'The member that leads: it gets the steps that name no member, and, as an agent of a team without steps, it is prompted in rounds to add steps. Null: none.',
      }),
      steps: z
        .array(step, { error: 'must be an array' })
        .max(sharedLimits.team_steps_max, {
          error: `must have at most ${sharedLimits.team_steps_max} entries`,
        })
        .default([]),
      review_route: z.enum(reviewRoutes).default('human').meta({
        description:
          'Who answers the permission reviews of members that do not lead. `leader`: the leader, if the team has one; after `reviews.leader_timeout_seconds` without an answer, people.',
      }),
      max_rounds: integer(1, limits.team_rounds_max).default(20).meta({
        description:
          'How many rounds an agent that leads a team without steps has before a person must decide how to continue.',
      }),
    },
    { error: 'must be an object' },
  )
  .transform((spec): SpecInput => {
    const member_id = defaultMember(spec);
    return {
      ...spec,
      steps: spec.steps.map((step) => ({ ...step, member_id: step.member_id ?? member_id })),
    };
  })
  .superRefine((spec, context) => {
    const fault = specFault(spec);
    if (fault) context.addIssue({ code: 'custom', path: fault.path, message: fault.message });
  })
  .meta({ id: 'TeamSpec' });

/** Throws a 400 for the first error. */
export function readSpec(value: unknown): SpecInput {
  return validate(z.object({ spec: teamSpec }), { spec: value }, 'body').spec;
}

function runsOfItself(preset: string | null): boolean {
  return preset !== null && Boolean(findPreset(preset)?.program);
}

function getProtocol(preset: string | null): Protocol {
  return (preset === null ? null : findPreset(preset))?.protocol ?? 'auto';
}
