/** Teams: definitions of members and steps, shared with other users. */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
import { problems } from '../domain/problem.ts';
import type { ShownSpec } from '../domain/team.ts';
import { bounded, id, list, name, pageQuery, time, username } from './fields.ts';
import { route } from './route.ts';
import { teamSpec } from './team-spec.ts';

export const specRecord = z.record(z.string(), z.unknown()).meta({
  description:
    "A `TeamSpec` with every default filled in. Values of variables are not in it: `env_keys` of a member's agent names them.",
}) as unknown as z.ZodType<ShownSpec>;

const teamRecord = z
  .object({
    id,
    name: z.string(),
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
const description = bounded(limits.team_text_chars_max);
const humans = z
  .array(username)
  .max(limits.team_humans_max, { error: `must have at most ${limits.team_humans_max} entries` })
  .meta({ description: 'Names of users who see and change the team and its runs.' });

const one = '/api/teams/{team_id}' as const;

export const teamRoutes = {
  listTeams: route({
    method: 'GET',
    path: '/api/teams',
    action: 'teams.list',
    tag: 'Teams',
    summary: 'Teams, newest first',
    description: 'Root sees all teams, a user the own ones and those that count the user among their humans.',
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
      'teamExists',
    ],
    idempotent: true,
  }),
  getTeam: route({
    method: 'GET',
    path: one,
    action: 'team.read',
    tag: 'Teams',
    summary: 'One team',
    answers: { 200: teamRecord },
    errors: ['teamNotFound'],
  }),
  updateTeam: route({
    method: 'PUT',
    path: one,
    action: 'team.change',
    tag: 'Teams',
    summary: 'Change a team',
    description:
      'Only what is given. Needs the `version` that the change was made from, here or as `If-Match: "<version>"`. Runs keep the definition that they began with. Variables that `env_keys` lists without a value in `env` keep theirs; those that neither lists are removed.',
    body: z.object({
      name: teamName.optional(),
      spec: teamSpec.optional(),
      description: description.optional(),
      human_members: humans.optional(),
      version: z.int({ error: 'must be an integer' }).optional(),
    }),
    unknown_fields: 'ignored',
    answers: { 200: teamRecord },
    errors: ['teamNotFound', 'versionRequired', 'teamChanged', 'teamExists'],
  }),
  deleteTeam: route({
    method: 'DELETE',
    path: one,
    action: 'team.delete',
    tag: 'Teams',
    summary: 'Delete a team with its tasks, conversations and runs',
    description: 'By its creator and root. Agents that its runs made stay.',
    answers: { 204: null },
    errors: ['teamNotFound', 'notAllowed', 'teamHasRuns'],
  }),
};
