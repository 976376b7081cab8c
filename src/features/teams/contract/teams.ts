/** API of teams: definitions of members and steps, shared with other users. */
import { z } from 'zod';
import { bounded, id, list, name, pageQuery, time, username } from '../../../api/fields.ts';
import { route } from '../../../api/route.ts';
import { limits as sharedLimits } from '../../../base/limits.ts';
import { problems } from '../../../core/problem.ts';
import { limits } from '../limits.ts';
import { TEAM_KEY } from '../rules/key.ts';
import type { RedactedSpec } from '../rules/team.ts';
import { teamSpec } from './spec.ts';

export const specRecord = z.record(z.string(), z.unknown()).meta({
  description:
    "A `TeamSpec` with every default filled in. It contains no values of variables: `env_keys` of a member's agent names them.",
}) as unknown as z.ZodType<RedactedSpec>;

const teamRecord = z
  .object({
    id,
    name: z.string(),
    key: z.string().meta({ description: 'The names of its tasks begin with it: `DEM-1`.' }),
    description: z.string(),
    spec: specRecord,
    version: z.int(),
    human_members: z.array(z.string()),
    created_by: id,
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Team' });

const teamName = z
  .string({ error: problems.teamNameRequired().message })
  .refine((text) => text.trim() !== '', { error: problems.teamNameRequired().message })
  .pipe(name);
const key = z
  .string({ error: 'must be 2 to 5 uppercase letters' })
  .regex(TEAM_KEY, { error: 'must be 2 to 5 uppercase letters' });
const description = bounded(sharedLimits.team_text_chars_max);
const humans = z
  .array(username)
  .max(limits.team_humans_max, { error: `must have at most ${limits.team_humans_max} entries` })
  .meta({ description: 'Usernames of people who can see and change the team and its runs.' });

const one = '/api/teams/{team_id}' as const;

export const teamRoutes = {
  listTeams: route({
    method: 'GET',
    path: '/api/teams',
    action: 'teams.list',
    tag: 'Teams',
    summary: 'List teams, newest first',
    description:
      'Root sees all teams; other users see their own and those that list them in `human_members`.',
    query: z.object(pageQuery),
    answers: { 200: list(teamRecord) },
  }),
  createTeam: route({
    method: 'POST',
    path: '/api/teams',
    action: 'teams.create',
    tag: 'Teams',
    summary: 'Create a team',
    body: z.object({
      name: teamName,
      key: key
        .optional()
        .meta({ description: '2 to 5 uppercase letters; by default derived from the name.' }),
      spec: teamSpec,
      description: description.default(''),
      human_members: humans.default([]),
    }),
    unknown_fields: 'ignored',
    answers: { 201: teamRecord },
    errors: [
      'teamNameRequired',
      'specNotObject',
      'membersNotArray',
      'membersEmpty',
      'specMemberIdRequired',
      'leaderUndefined',
      'stepKeyRequired',
      'needsEmpty',
      'needsUndefined',
      'stepCycle',
      'noLocalNode',
      'teamExists',
      'teamKeyExists',
      'teamKeysTaken',
    ],
    idempotent: true,
  }),
  getTeam: route({
    method: 'GET',
    path: one,
    action: 'team.read',
    tag: 'Teams',
    summary: 'Get a team',
    answers: { 200: teamRecord },
    errors: ['teamNotFound'],
  }),
  updateTeam: route({
    method: 'PUT',
    path: one,
    action: 'team.change',
    tag: 'Teams',
    summary: 'Update a team',
    description:
      'Changes only the given fields. Needs the `version` on which the change is based, here or as `If-Match: "<version>"`. Runs keep the definition that they started with. Variables that `env_keys` lists without a value in `env` keep theirs; those that neither lists are removed.',
    body: z.object({
      name: teamName.optional(),
      key: key.optional().meta({ description: 'Renames all tasks of the team.' }),
      spec: teamSpec.optional(),
      description: description.optional(),
      human_members: humans.optional(),
      version: z.int({ error: 'must be an integer' }).optional(),
    }),
    unknown_fields: 'ignored',
    answers: { 200: teamRecord },
    errors: ['teamNotFound', 'versionRequired', 'teamChanged', 'noLocalNode', 'teamExists', 'teamKeyExists'],
  }),
  deleteTeam: route({
    method: 'DELETE',
    path: one,
    action: 'team.delete',
    tag: 'Teams',
    summary: 'Delete a team with its tasks, task threads and runs',
    description:
      'Only for its creator and root. Agents that its runs created are kept for `retention.run_agents_days`.',
    answers: { 204: null },
    errors: ['teamNotFound', 'notAllowed', 'teamHasRuns'],
  }),
};
