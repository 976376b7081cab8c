/** The routes for signing in, the caller's own account, its tokens and sign-ins. */
import { z } from 'zod';
import { bounded, id, list, name, pageQuery, password, time, username } from '../../../api/fields.ts';
import { route } from '../../../api/route.ts';
import { limits as sharedLimits } from '../../../base/limits.ts';
import { scopes } from '../../../core/grant.ts';
import { limits } from '../limits.ts';
import { roles } from '../rules.ts';

export const userRecord = z
  .object({ id, username: z.string(), role: z.enum(roles), created_at: time })
  .meta({ id: 'User' });

const expiresIn = z.int().meta({ description: 'Seconds until the token expires if it is not used.' });

export const signedIn = z
  .object({ token: z.string(), expires_in: expiresIn, user: userRecord })
  .meta({ id: 'SignedIn', description: 'A bearer token and its user.' });

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
    scopes: z.array(scope).meta({ description: 'The scopes of the token.' }),
    agent_ids: z.array(id).nullable().meta({
      description: 'The agents that the token is limited to. Null, like `team_ids`, if it is not limited.',
    }),
    team_ids: z.array(id).nullable().meta({ description: 'The teams that the token is limited to.' }),
    created_at: time,
    last_used_at: time.nullable(),
    expires_at: time.nullable(),
  })
  .meta({ id: 'ApiToken' });

/** Ids that a token is limited to. Rejects an empty list, because it could be mistaken for no limit. */
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
    current: z.boolean().meta({ description: 'Whether it is the sign-in of this request.' }),
  })
  .meta({ id: 'SignIn' });

export const secretText = bounded(sharedLimits.password_chars_max);

export const accountRoutes = {
  join: route({
    method: 'POST',
    path: '/api/join',
    action: 'session.open',
    tag: 'Accounts',
    summary: 'Create the first root user',
    description:
      'Takes the token and the PIN of the join challenge that the service printed at its first start. Five wrong PINs invalidate the challenge. `X-Tries-Left` of an `invalid pin` says how many are left.',
    body: z.object({ token: secretText, pin: secretText, username, password }),
    unknown_fields: 'refused',
    answers: { 201: signedIn },
    errors: ['rootAlreadyInitialized', 'invalidJoinToken', 'joinTokenExpired', 'invalidPin'],
  }),
  checkJoinPin: route({
    method: 'POST',
    path: '/api/join/check',
    action: 'session.open',
    tag: 'Accounts',
    summary: 'Check the token and the PIN of the join challenge',
    description: 'A wrong PIN counts like one in `POST /api/join`. The challenge stays valid.',
    body: z.object({ token: secretText, pin: secretText }),
    unknown_fields: 'refused',
    answers: { 204: null },
    errors: ['rootAlreadyInitialized', 'invalidJoinToken', 'joinTokenExpired', 'invalidPin'],
  }),
  login: route({
    method: 'POST',
    path: '/api/login',
    action: 'session.open',
    limits_rate: true,
    tag: 'Accounts',
    summary: 'Sign in with a password',
    description:
      'After five failures within 15 minutes, further attempts are delayed; each failure doubles the delay (429 with `Retry-After`).',
    body: z.object({ username: secretText, password: secretText }),
    unknown_fields: 'refused',
    answers: { 200: signedIn },
    errors: ['invalidLogin', 'tooManyAttempts'],
  }),
  logout: route({
    method: 'POST',
    path: '/api/logout',
    action: 'self.change',
    tag: 'Accounts',
    summary: 'Sign out: revoke the token of this request',
    answers: { 204: null },
  }),
  refreshToken: route({
    method: 'POST',
    path: '/api/token/refresh',
    action: 'self.change',
    tag: 'Accounts',
    summary: 'Replace the token of this request',
    description:
      'The old token becomes invalid; streams that were opened with it stay open. The new token still expires seven days after the sign-in. Not for API tokens.',
    answers: { 200: z.object({ token: z.string(), expires_in: expiresIn }).meta({ id: 'FreshToken' }) },
    errors: ['notAllowed'],
  }),
  getMe: route({
    method: 'GET',
    path: '/api/me',
    action: 'self.read',
    tag: 'Accounts',
    summary: 'Get the current user',
    answers: { 200: me },
  }),
  changePassword: route({
    method: 'POST',
    path: '/api/me/password',
    action: 'self.change',
    tag: 'Accounts',
    summary: 'Change your password',
    description: 'Revokes all your other tokens, including API tokens.',
    body: z.object({ current_password: secretText, new_password: password }),
    unknown_fields: 'refused',
    answers: { 200: me },
    errors: ['invalidLogin', 'tooManyAttempts'],
  }),
  listSignIns: route({
    method: 'GET',
    path: '/api/me/sessions',
    action: 'self.list',
    tag: 'Accounts',
    summary: 'List your sign-ins',
    query: z.object(pageQuery),
    answers: { 200: list(signIn) },
  }),
  endSignIn: route({
    method: 'DELETE',
    path: '/api/me/sessions/{sign_in_id}',
    action: 'self.change',
    tag: 'Accounts',
    summary: 'End a sign-in',
    answers: { 204: null },
    errors: ['sessionNotFound'],
  }),
  listTokens: route({
    method: 'GET',
    path: '/api/tokens',
    action: 'self.list',
    tag: 'Accounts',
    summary: 'List your API tokens',
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
      'The token is only in this response and is never shown again. An API token cannot create others.',
      '',
      'Each operation needs one scope, named in its description; no scope includes another. `read`: view records, logs',
      'and streams. `operate`: start and stop agents, send input, prompts, mail and messages, answer permission reviews,',
      'command runs. `manage`: create, change and delete agents, teams and tasks, change the account. `admin`: operations of',
      'root; it can create users, so it is equivalent to root. `metrics`: `/metrics`. Only root can grant `admin`',
      'and `metrics`. Without `scopes` a token gets all scopes of its creator except `admin`.',
      '',
      'With `agent_ids` or `team_ids` the token can access these agents, and these teams with their agents, runs, tasks and mail.',
      'For everything else it gets 404, and it cannot create agents or teams (403).',
    ].join('\n'),
    body: z.object({
      name,
      scopes: z
        .array(scope)
        .min(1)
        .optional()
        .meta({ description: 'Default: all scopes of the creator except `admin`.' }),
      agent_ids: limitedTo('agents'),
      team_ids: limitedTo('teams'),
      expires_at: z.iso
        .datetime({ offset: true })
        .refine((text) => Date.parse(text) < Date.UTC(10_000, 0), { error: 'must be before the year 10000' })
        .nullable()
        .default(null)
        .meta({ description: 'When the token expires; null: never.' }),
    }),
    unknown_fields: 'refused',
    answers: {
      201: apiToken.extend({ token: z.string() }).meta({ id: 'NewApiToken' }),
    },
    errors: ['nameRequired', 'expiryPassed', 'tooManyTokens', 'notAllowed'],
    idempotent: true,
  }),
  deleteToken: route({
    method: 'DELETE',
    path: '/api/tokens/{token_id}',
    action: 'self.change',
    tag: 'Accounts',
    summary: 'Revoke an API token',
    answers: { 204: null },
    errors: ['tokenNotFound'],
  }),
};
