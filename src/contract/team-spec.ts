/**
 * The definition of a team: its form, its defaults, and what is said of a bad one. Only the first problem is told, in this
 * order: the form, field by field as the schema has them (members and steps one after the other); then unique members,
 * the reserved ids, the leader; unique steps, whose they are, what they depend on, cycles.
 */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
import { type Protocol, permissionModes, protocols, worktreeModes } from '../domain/agent.ts';
import { MAIN_NODE } from '../domain/node.ts';
import { findPreset } from '../domain/presets.ts';
import { problems } from '../domain/problem.ts';
import { reviewRoutes } from '../domain/review.ts';
import { type AskedSpec, defaultMember, stepConditions } from '../domain/team.ts';
import { MEMBER_ID, specFault, withoutRepeats } from '../domain/team-spec.ts';
import { argv, command, env, envKey } from './agents.ts';
import { bounded, name, nodeId } from './fields.ts';
import { validate } from './validate.ts';

const text = bounded(limits.team_text_chars_max);
const path = bounded(limits.path_chars_max).nullable().default(null);

function integer(min: number, max: number) {
  const error = `must be an integer from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

export const memberId = z
  .string()
  .min(1, { error: 'is required' })
  .regex(MEMBER_ID, { error: 'must be 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-"' });

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
  .transform((keys) => withoutRepeats(keys as string[]))
  .meta({
    description: 'Steps that have to be over first.',
    wire: { type: 'array', items: { type: 'string' } },
  });

export const anyJson = z.unknown().meta({ description: 'Any JSON.' });

/** What is said of a step beside whose it is, in a definition and of one that is added. */
export const stepFields = {
  depends_on: dependsOn.default([]),
  when: z.enum(stepConditions).default('on_success').meta({
    description: '`always`: taken once everything it depends on is over, whatever came of it.',
  }),
  prompt: bounded(limits.prompt_chars_max).default('').meta({
    description: 'What its member is asked to do; said to an agent that speaks ACP.',
  }),
  input: anyJson.default(null),
  timeout_seconds: integer(1, limits.step_timeout_seconds_max)
    .nullable()
    .default(null)
    .meta({ description: 'Of one attempt; null: no end.' }),
  max_attempts: integer(1, limits.step_attempts_max).default(1),
};

const memberAgent = z
  .object({
    command: command.nullable().default(null),
    argv: argv.nullable().default(null),
    preset: bounded(limits.preset_id_chars_max)
      .refine((id) => findPreset(id) !== null, { error: 'must be a known preset' })
      .nullable()
      .default(null),
    permission_mode: z.enum(permissionModes).default('ask'),
    protocol: z.enum(protocols).default('auto').meta({
      description: '`auto`: what the preset speaks, else `plain`. A member that speaks ACP has one agent.',
    }),
    node_id: nodeId.default(MAIN_NODE),
    workdir: path,
    worktree_mode: z.enum(worktreeModes).default('use_existing'),
    worktree_repo: path,
    env: env.default({}).meta({ description: 'Values are never returned; records name them in `env_keys`.' }),
    env_keys: z
      .array(envKey)
      .max(limits.env_items_max, { error: `must have at most ${limits.env_items_max} entries` })
      .optional()
      .meta({ description: 'Variables of the present definition that keep the value they have.' }),
    restart_policy: z
      .unknown()
      .refine((policy) => policy === undefined, { error: 'is not allowed for members of teams' })
      .optional(),
  })
  .refine((agent) => agent.command?.trim() || agent.argv || runsOfItself(agent.preset), {
    error: 'needs command, argv or a preset that runs one',
  })
  .transform(({ restart_policy: _, ...agent }) => ({
    ...agent,
    protocol: agent.protocol === 'auto' ? protocolOf(agent.preset) : agent.protocol,
  }))
  .meta({ id: 'MemberAgent', description: "How a member's agent is made; one for each run." });

const member = z
  .object({
    member_id: memberId,
    description: text.default(''),
    skills: z
      .array(name)
      .max(limits.team_skills_max, { error: `must have at most ${limits.team_skills_max} entries` })
      .default([]),
    prompt: text.default('').meta({ description: 'The role that its agent is given.' }),
    agent: memberAgent.nullable().default(null).meta({
      description: 'Null: the member is driven from outside, by people and programs.',
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
      leader_member_id: z.string().nullable().default(null),
      steps: z
        .array(step, { error: 'must be an array' })
        .max(limits.team_steps_max, { error: `must have at most ${limits.team_steps_max} entries` })
        .default([]),
      review_route: z.enum(reviewRoutes).default('human'),
      max_rounds: integer(1, limits.team_rounds_max).default(20).meta({
        description: 'How often a leader without steps is asked before somebody has to say how it goes on.',
      }),
    },
    { error: 'must be an object' },
  )
  .transform((spec): AskedSpec => {
    const member_id = defaultMember(spec);
    return { ...spec, steps: spec.steps.map((one) => ({ ...one, member_id: one.member_id ?? member_id })) };
  })
  .superRefine((spec, context) => {
    const fault = specFault(spec);
    if (fault) context.addIssue({ code: 'custom', path: fault.path, message: fault.message });
  })
  .meta({ id: 'TeamSpec' });

/** Throws the 400 of the first problem. */
export function readSpec(value: unknown): AskedSpec {
  return validate(z.object({ spec: teamSpec }), { spec: value }, 'body').spec;
}

function runsOfItself(preset: string | null): boolean {
  return preset !== null && Boolean(findPreset(preset)?.program);
}

function protocolOf(preset: string | null): Protocol {
  return (preset === null ? null : findPreset(preset))?.protocol ?? 'auto';
}
