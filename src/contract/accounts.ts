/** Signing in, the caller's own account, its tokens and sign-ins. */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
import { scopes } from '../domain/grant.ts';
import { roles } from '../domain/user.ts';
import { bounded, id, list, name, pageQuery, password, time, username } from './fields.ts';
import { route } from './route.ts';

export const userRecord = z
  .object({ id, username: z.string(), role: z.enum(roles), created_at: time })
  .meta({ id: 'User' });

const expiresIn = z.int().meta({ description: 'Seconds until the token ends when it is not used.' });

export const signedIn = z
  .object({ token: z.string(), expires_in: expiresIn, user: userRecord })
  .meta({ id: 'SignedIn', description: 'A bearer token and whose it is.' });

export const passkeyRecord = z
  .object({ id, name: z.string(), created_at: time, last_used_at: time.nullable() })
  .meta({ id: 'Passkey' });

const me = userRecord
  .extend({
    passkeys: z.array(passkeyRecord),
  })
  .meta({ id: 'Me' });

const scope = z.enum(scopes);

const apiToken = z
  .object({
    id,
    name: z.string(),
    scopes: z.array(scope).meta({ description: 'What the token may do.' }),
    agent_ids: z.array(id).nullable().meta({
      description: 'The agents that the token is limited to; null, as `team_ids` then: it is not limited.',
    }),
    team_ids: z.array(id).nullable().meta({ description: 'The teams that the token is limited to.' }),
    created_at: time,
    last_used_at: time.nullable(),
    expires_at: time.nullable(),
  })
  .meta({ id: 'ApiToken' });

/** Ids that a token is limited to. An empty list is refused, because it could be meant as no limit. */
const limitedTo = (what: string) =>
  z
    .array(bounded(limits.id_chars_max))
    .min(1)
    .max(limits.token_limits_max)
    .nullable()
    .default(null)
    .meta({
      description: `The ${what} that the token is limited to. Without \`agent_ids\` and \`team_ids\` there is no limit.`,
    });

const signIn = z
  .object({
    id,
    user_agent: z.string().nullable(),
    ip: z.string().nullable(),
    created_at: time,
    last_used_at: time,
    expires_at: time,
    current: z.boolean().meta({ description: 'The sign-in that made this request.' }),
  })
  .meta({ id: 'SignIn' });

export const secretText = bounded(limits.password_chars_max);

export const accountRoutes = {
  join: route({
    method: 'POST',
    path: '/api/join',
    action: 'session.open',
    tag: 'Accounts',
    summary: 'Create the first root user',
    description:
      'Takes the token and the PIN of the join challenge that the service printed at its first start. Five wrong PINs burn the challenge.',
    body: z.object({ token: secretText, pin: secretText, username, password }),
    unknown_fields: 'refused',
    answers: { 201: signedIn },
    errors: ['rootAlreadyInitialized', 'invalidJoinToken', 'joinTokenExpired', 'invalidPin'],
    secret_answer: true,
  }),
  login: route({
    method: 'POST',
    path: '/api/login',
    action: 'session.open',
    tag: 'Accounts',
    summary: 'Sign in with a password',
    description:
      'After five failures in a quarter of an hour attempts have to wait, twice as long after each further one (429 with `Retry-After`).',
    body: z.object({ username: secretText, password: secretText }),
    unknown_fields: 'refused',
    answers: { 200: signedIn },
    errors: ['invalidLogin'],
    secret_answer: true,
  }),
  logout: route({
    method: 'POST',
    path: '/api/logout',
    action: 'self.change',
    tag: 'Accounts',
    summary: 'End the token of this request',
    answers: { 204: null },
  }),
  refreshToken: route({
    method: 'POST',
    path: '/api/token/refresh',
    action: 'self.change',
    tag: 'Accounts',
    summary: 'Change the token of this request for a new one',
    description:
      'The old token ends; streams that were opened with it stay open. The end seven days after the sign-in stays. Not for API tokens.',
    answers: { 200: z.object({ token: z.string(), expires_in: expiresIn }).meta({ id: 'FreshToken' }) },
    errors: ['notAllowed'],
    secret_answer: true,
  }),
  getMe: route({
    method: 'GET',
    path: '/api/me',
    action: 'self.read',
    tag: 'Accounts',
    summary: 'The caller',
    answers: { 200: me },
  }),
  changePassword: route({
    method: 'POST',
    path: '/api/me/password',
    action: 'self.change',
    tag: 'Accounts',
    summary: 'Change the own password',
    description: 'Ends every other token of the caller, API tokens too.',
    body: z.object({ current_password: secretText, new_password: password }),
    unknown_fields: 'refused',
    answers: { 200: me },
    errors: ['invalidLogin'],
  }),
  listSignIns: route({
    method: 'GET',
    path: '/api/me/sessions',
    action: 'self.list',
    tag: 'Accounts',
    summary: 'Where the caller is signed in',
    query: z.object(pageQuery),
    answers: { 200: list(signIn) },
  }),
  endSignIn: route({
    method: 'DELETE',
    path: '/api/me/sessions/{sign_in_id}',
    action: 'self.change',
    tag: 'Accounts',
    summary: 'Sign out somewhere else',
    answers: { 204: null },
    errors: ['sessionNotFound'],
  }),
  listTokens: route({
    method: 'GET',
    path: '/api/tokens',
    action: 'self.list',
    tag: 'Accounts',
    summary: "The caller's API tokens",
    query: z.object(pageQuery),
    answers: { 200: list(apiToken) },
  }),
  createToken: route({
    method: 'POST',
    path: '/api/tokens',
    action: 'self.change',
    tag: 'Accounts',
    summary: 'Create a named API token',
    description: [
      'The token itself is in this answer and is never shown again. An API token cannot create others.',
      '',
      'Each operation needs one scope, named in its description; no scope includes another. `read`: look at records, logs',
      'and streams. `operate`: start and stop agents, send input, prompts, mail and messages, answer permission reviews,',
      'command runs. `manage`: create, change and delete agents, teams and tasks, change the account. `admin`: operations of',
      'root; whoever has it can create users, so it is as good as root. `metrics`: `/metrics`. Only root can grant `admin`',
      'and `metrics`. Without `scopes` a token gets all that its creator may have but `admin`.',
      '',
      'With `agent_ids` or `team_ids` the token reaches these agents, and these teams with their agents, runs, tasks and mail.',
      'Everything else is 404 to it, and it cannot create agents or teams (403).',
    ].join('\n'),
    body: z.object({
      name,
      scopes: z
        .array(scope)
        .min(1)
        .optional()
        .meta({ description: 'Absent: all that the creator may have but `admin`.' }),
      agent_ids: limitedTo('agents'),
      team_ids: limitedTo('teams'),
      expires_at: z.iso
        .datetime({ offset: true })
        .refine((text) => Date.parse(text) < Date.UTC(10_000, 0), { error: 'must be before the year 10000' })
        .nullable()
        .default(null)
        .meta({ description: 'When the token ends; null: never.' }),
    }),
    unknown_fields: 'refused',
    answers: {
      201: apiToken.extend({ token: z.string() }).meta({ id: 'NewApiToken' }),
    },
    errors: ['nameRequired', 'expiryPassed', 'tooManyTokens', 'notAllowed'],
    idempotent: true,
    secret_answer: true,
  }),
  deleteToken: route({
    method: 'DELETE',
    path: '/api/tokens/{token_id}',
    action: 'self.change',
    tag: 'Accounts',
    summary: 'End an API token',
    answers: { 204: null },
    errors: ['tokenNotFound'],
  }),
};
