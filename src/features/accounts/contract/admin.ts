/** Root's routes for users, the audit log and live settings, and the route for the join challenge of the first root. */
import { z } from 'zod';
import { id, list, pageQuery, password, shortList, time, username } from '../../../api/fields.ts';
import { route } from '../../../api/route.ts';
import { limits } from '../../../base/limits.ts';
import { folderSettings } from '../../../core/problem.ts';
import { auditEvents, auditLevels } from '../../audit/rules/audit.ts';
import { roles } from '../rules.ts';
import { userRecord } from './accounts.ts';

export const auditRecord = z
  .object({
    id: z.int(),
    timestamp: time,
    level: z.enum(auditLevels),
    event: z.enum(auditEvents),
    agent_id: id.nullable(),
    user_id: id.nullable(),
    ip: z.string().nullable(),
    workdir: z.string().nullable(),
    details: z.record(z.string(), z.unknown()),
    hash: z.string().meta({ description: "SHA-256 over the previous record's hash and this record, hex." }),
  })
  .meta({ id: 'AuditRecord' });

const setting = z
  .object({
    key: z.string(),
    value: z.unknown().meta({ description: 'Secrets are masked.' }),
    origin: z.enum(['flag', 'env', 'live', 'file', 'default']),
    source: z.string().nullable().meta({
      description: 'The flag, variable, or file and line that set it; null for live values and defaults.',
    }),
    live: z.boolean().meta({ description: 'Can be changed while the service runs.' }),
    description: z.string(),
  })
  .meta({ id: 'Setting' });

const sha256 = z.string().regex(/^[0-9a-f]{64}$/, { error: 'must be a SHA-256 in hex' });

const instant = z.iso.datetime({ offset: true }).optional();

export const adminRoutes = {
  createJoinChallenge: route({
    method: 'POST',
    path: '/api/admin/join-challenge',
    loopback: true,
    action: 'session.open',
    tag: 'Administration',
    summary: 'Create a join challenge in the data directory',
    description:
      'Only from this machine, and only while there is no root user. The link and PIN are in `join.json` in the data directory, which only the user of the service can read; `svc join-link` shows them. Keeps a challenge that is still valid, so the call cannot invalidate a link that is in use.',
    unknown_fields: 'refused',
    answers: {
      202: z
        .object({ file: z.string().meta({ description: 'Path of `join.json`.' }), expires_at: time })
        .meta({ id: 'JoinChallenge' }),
    },
    errors: ['rootAlreadyInitialized', 'notAllowed'],
  }),
  listUsers: route({
    method: 'GET',
    path: '/api/admin/users',
    action: 'users.manage',
    tag: 'Administration',
    summary: 'List users',
    query: z.object(pageQuery),
    answers: { 200: list(userRecord) },
  }),
  createUser: route({
    method: 'POST',
    path: '/api/admin/users',
    action: 'users.manage',
    tag: 'Administration',
    summary: 'Create a user',
    body: z.object({ username, password, role: z.enum(roles).default('user') }),
    unknown_fields: 'refused',
    answers: { 201: userRecord },
    errors: ['usernameTaken'],
    idempotent: true,
  }),
  getUser: route({
    method: 'GET',
    path: '/api/admin/users/{user_id}',
    action: 'users.manage',
    tag: 'Administration',
    summary: 'Get a user',
    answers: { 200: userRecord },
    errors: ['userNotFound'],
  }),
  updateUser: route({
    method: 'PATCH',
    path: '/api/admin/users/{user_id}',
    action: 'users.manage',
    tag: 'Administration',
    summary: "Change a user's name, role or password",
    description: 'Changing the role or password revokes the tokens of the user.',
    body: z.object({
      username: username.optional(),
      password: password.optional(),
      role: z.enum(roles).optional(),
    }),
    unknown_fields: 'refused',
    answers: { 200: userRecord },
    errors: ['userNotFound', 'usernameTaken', 'lastRoot'],
  }),
  deleteUser: route({
    method: 'DELETE',
    path: '/api/admin/users/{user_id}',
    action: 'users.manage',
    tag: 'Administration',
    summary: 'Delete a user',
    description:
      'Revokes the tokens of the user. Rejected while the user has agents, or teams that they created; delete those first.',
    answers: { 204: null },
    errors: ['userNotFound', 'lastRoot', 'userHasAgents', 'userHasTeams'],
  }),
  listAudit: route({
    method: 'GET',
    path: '/api/admin/audit',
    action: 'audit.read',
    tag: 'Administration',
    summary: 'List audit records, newest first',
    description: 'Without `limit` and `cursor`, the newest 200 records.',
    query: z.object({
      ...pageQuery,
      event: z.string().optional(),
      user_id: z.string().optional().meta({
        description: 'The id of a user: what they did, also with their API tokens. Names are not accepted.',
      }),
      agent_id: z.string().optional(),
      since: instant.meta({ description: 'Records at or after this time.' }),
      until: instant.meta({ description: 'Records before this time.' }),
    }),
    answers: { 200: list(auditRecord) },
  }),
  verifyAudit: route({
    method: 'GET',
    path: '/api/admin/audit/verify',
    action: 'audit.read',
    tag: 'Administration',
    summary: 'Verify the audit log',
    description:
      'Verifies the hash chain from the first record to the last. A truncated chain is still valid: to detect that, set `head` to a hash (`audit_hash`) from the log of the service.',
    query: z.object({
      head: sha256.optional().meta({ description: 'A hash that one of the valid records should have.' }),
    }),
    answers: {
      200: z
        .object({
          records: z.int().meta({ description: 'How many records are valid, starting with the first.' }),
          broken_id: z.int().nullable().meta({
            description:
              'The first record that does not match the one before it: either it was changed, or the records before it were. Null: all match.',
          }),
          head: z.string().meta({ description: 'Hash of the last valid record, hex.' }),
          holds_head: z.boolean().nullable().meta({
            description: 'Whether a valid record has the hash `head`; null without `head`.',
          }),
        })
        .meta({ id: 'AuditVerdict' }),
    },
  }),
  getConfig: route({
    method: 'GET',
    path: '/api/admin/config',
    action: 'config.manage',
    tag: 'Administration',
    summary: 'List settings with their values and origins',
    query: z.object(pageQuery),
    answers: { 200: shortList(setting) },
  }),
  updateConfig: route({
    method: 'PATCH',
    path: '/api/admin/config',
    action: 'config.manage',
    tag: 'Administration',
    summary: 'Change live settings',
    description:
      'Applies all changes or none. `null` removes a live value, so that the next origin takes effect.',
    body: z.record(z.string().max(limits.name_chars_max), z.unknown()),
    unknown_fields: 'ignored',
    answers: { 200: z.array(setting) },
    errors: ['settingFixed'],
  }),
  allowFolder: route({
    method: 'POST',
    path: '/api/admin/config/folders',
    action: 'config.manage',
    tag: 'Administration',
    summary: 'Let agents of the main node use a folder',
    description:
      'Adds the folder to a live setting that lists folders, unless it is listed already. Safe when several root users allow folders at once.',
    body: z.object({
      setting: z.enum(folderSettings).meta({
        description: '`worktree.repo_roots`: only as a source of worktrees, not as a `workdir`.',
      }),
      path: z.string().meta({ description: 'An absolute path on the machine of the plane.' }),
    }),
    unknown_fields: 'refused',
    answers: {
      200: z
        .object({ folders: z.array(z.string()).meta({ description: 'The folders of the setting.' }) })
        .meta({ id: 'AllowedFolders' }),
    },
    errors: ['settingFixed'],
  }),
  getDiagnosis: route({
    method: 'GET',
    path: '/api/admin/diagnosis',
    action: 'config.manage',
    tag: 'Administration',
    summary: 'Examine the machine of the service',
    description:
      'What `svc doctor` reports about the running service. Changes nothing, and takes a few seconds at most.',
    answers: {
      200: z
        .object({
          version: z.string().meta({ description: 'Version of svc.' }),
          folders: z
            .array(
              z.object({
                setting: z.enum(folderSettings),
                path: z.string(),
                problem: z.string().nullable().meta({
                  description: 'Why the service cannot read the folder; null if it can.',
                }),
              }),
            )
            .meta({ description: 'The folders in which agents of the main node may work.' }),
        })
        .meta({ id: 'Diagnosis' }),
    },
  }),
};
