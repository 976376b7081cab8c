/** Signing in, the caller's own account, its tokens and sign-ins. */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
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

const apiToken = z
  .object({
    id,
    name: z.string(),
    created_at: time,
    last_used_at: time.nullable(),
    expires_at: time.nullable(),
  })
  .meta({ id: 'ApiToken' });

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
    action: 'self.read',
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
    action: 'self.read',
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
    summary: 'Make a named API token',
    description:
      'The token itself is in this answer and is never shown again. An API token cannot make others.',
    body: z.object({
      name,
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
