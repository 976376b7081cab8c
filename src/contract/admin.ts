/** What only root does: users, the audit log, live settings; and the challenge that makes the first root. */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
import { auditEvents, auditLevels } from '../domain/audit.ts';
import { roles } from '../domain/user.ts';
import { userRecord } from './accounts.ts';
import { id, list, pageQuery, password, time, username } from './fields.ts';
import { route } from './route.ts';

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
    hash: z.string().meta({ description: 'SHA-256 over the record before and this one, hex.' }),
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
    summary: 'Write a join challenge into the data directory',
    description:
      'Only from this machine, and only while there is no root user. Link and PIN are in `join.json` in the data directory, which only the user of the service can read; `svc join-link` shows them. A challenge that is still valid is kept, so the call cannot end a link that is in use.',
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
    summary: 'All users',
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
    summary: 'One user',
    answers: { 200: userRecord },
    errors: ['userNotFound'],
  }),
  updateUser: route({
    method: 'PATCH',
    path: '/api/admin/users/{user_id}',
    action: 'users.manage',
    tag: 'Administration',
    summary: "Change a user's name, role or password",
    description: 'A change of role or password ends the tokens of that user.',
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
    description: 'Ends the tokens of that user. Refused while the user has agents: delete those first.',
    answers: { 204: null },
    errors: ['userNotFound', 'lastRoot', 'userHasAgents', 'userHasTeams'],
  }),
  listAudit: route({
    method: 'GET',
    path: '/api/admin/audit',
    action: 'audit.read',
    tag: 'Administration',
    summary: 'The audit log, newest first',
    description: 'Without `limit` and `cursor` the newest 200 records.',
    query: z.object({
      ...pageQuery,
      event: z.string().optional(),
      user_id: z.string().optional(),
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
    summary: 'Whether the audit log is as it was written',
    description:
      'Follows the chain of hashes from the first record to the last. Records that were cut off at the end leave a sound chain: give `head`, a hash (`audit_hash`) that the log of the service holds, to find that.',
    query: z.object({
      head: sha256.optional().meta({ description: 'A hash that one of the records must have.' }),
    }),
    answers: {
      200: z
        .object({
          records: z.int().meta({ description: 'How many records are sound, from the first on.' }),
          broken_id: z.int().nullable().meta({
            description:
              'The first record that does not follow from the one before it: it was changed, or what stood before it was. Null: all do.',
          }),
          head: z.string().meta({ description: 'Hash of the last sound record, hex.' }),
          holds_head: z.boolean().nullable().meta({
            description: 'Whether a sound record has the hash that was asked for; null where none was.',
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
    summary: 'Every setting, its value and where the value comes from',
    answers: { 200: z.array(setting) },
  }),
  updateConfig: route({
    method: 'PATCH',
    path: '/api/admin/config',
    action: 'config.manage',
    tag: 'Administration',
    summary: 'Change live settings',
    description: 'All of them or none. `null` takes a live value away, so that the next origin counts again.',
    body: z.record(z.string().max(limits.name_chars_max), z.unknown()),
    unknown_fields: 'ignored',
    answers: { 200: z.array(setting) },
  }),
};
