/**
 * The routes for passkeys (WebAuthn): where they work, adding one, signing in with one, renaming and removing them. Options and
 * responses have the JSON form that browsers use; the service validates the responses.
 */
import { z } from 'zod';
import { bounded, foreign, id, name } from '../../api/fields.ts';
import { route } from '../../api/route.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { passkeyRecord, secretText, signedIn } from '../accounts/contract/accounts.ts';
import { limits } from './limits.ts';

const relyingParty = z
  .object({
    rp_id: z.string().nullable().meta({ description: 'The domain of the passkeys.' }),
    origin: z.string().nullable().meta({ description: 'The only origin whose pages can use them.' }),
    reason: z.string().nullable().meta({ description: 'Why passkeys do not work; null if they do.' }),
  })
  .meta({ id: 'RelyingParty', description: 'Where passkeys work, or why they do not.' });

const type = z.literal('public-key');

const creationOptions = z
  .object({
    challenge: z.string(),
    rp: z.object({ id: z.string(), name: z.string() }),
    user: z.object({ id: z.string(), name: z.string(), displayName: z.string() }),
    pubKeyCredParams: z.array(z.object({ type, alg: z.int() })),
    timeout: z.int().meta({ description: 'Milliseconds.' }),
    excludeCredentials: z.array(z.object({ id: z.string(), type, transports: z.array(z.string()) })),
    authenticatorSelection: z.object({
      residentKey: z.literal('required'),
      requireResidentKey: z.literal(true),
      userVerification: z.literal('required'),
    }),
    attestation: z.literal('none'),
  })
  .meta({
    id: 'PasskeyCreationOptions',
    description: 'For `PublicKeyCredential.parseCreationOptionsFromJSON`.',
  });

const requestOptions = z
  .object({
    challenge: z.string(),
    rpId: z.string(),
    timeout: z.int().meta({ description: 'Milliseconds.' }),
    userVerification: z.literal('required'),
  })
  .meta({
    id: 'PasskeyRequestOptions',
    description: 'For `PublicKeyCredential.parseRequestOptionsFromJSON`.',
  });

const credentialId = bounded(limits.passkey_id_chars_max);
const bytes = bounded(limits.passkey_data_chars_max);
const credential = { id: credentialId, rawId: credentialId, type: bounded(32) };

const registrationResponse = foreign({
  ...credential,
  response: foreign({
    clientDataJSON: bytes,
    attestationObject: bytes,
    transports: z.array(bounded(32)).max(16).default([]),
  }),
}).meta({ id: 'PasskeyRegistrationResponse', description: 'The result of `PublicKeyCredential.toJSON`.' });

const loginResponse = foreign({
  ...credential,
  response: foreign({
    clientDataJSON: bytes,
    authenticatorData: bytes,
    signature: bytes,
    userHandle: credentialId.nullable().default(null),
  }),
}).meta({ id: 'PasskeyLoginResponse', description: 'The result of `PublicKeyCredential.toJSON`.' });

const currentPassword = secretText.optional().meta({
  description: 'Required unless this sign-in verified the password within the last ten minutes.',
});

export const passkeyRoutes = {
  getRelyingParty: route({
    method: 'GET',
    path: '/api/passkeys/relying-party',
    action: 'session.open',
    tag: 'Passkeys',
    summary: 'Get the origin where passkeys work',
    answers: { 200: relyingParty },
  }),
  startPasskeyRegistration: route({
    method: 'POST',
    path: '/api/passkeys/registration/start',
    action: 'self.change',
    tag: 'Passkeys',
    summary: 'Start adding a passkey',
    description:
      'Finish within five minutes, in one attempt, with the token of this request. Not for API tokens. A wrong password counts as a failed sign-in.',
    body: z.object({ current_password: currentPassword }),
    unknown_fields: 'refused',
    answers: { 200: z.object({ options: creationOptions }).meta({ id: 'PasskeyRegistration' }) },
    errors: ['notAllowed', 'passwordRequired', 'invalidLogin', 'tooManyAttempts', 'tooManyPasskeys'],
  }),
  finishPasskeyRegistration: route({
    method: 'POST',
    path: '/api/passkeys/registration/finish',
    action: 'self.change',
    tag: 'Passkeys',
    summary: 'Finish adding a passkey',
    body: z.object({ name: name.default('Passkey'), response: registrationResponse }),
    unknown_fields: 'refused',
    answers: { 201: passkeyRecord },
    errors: ['nameRequired', 'notAllowed', 'passkeyRegistrationOver', 'passkeyNotValid', 'tooManyPasskeys'],
    idempotent: true,
  }),
  startPasskeyLogin: route({
    method: 'POST',
    path: '/api/passkeys/login/start',
    action: 'session.open',
    tag: 'Passkeys',
    summary: 'Start a sign-in with a passkey',
    description: 'Finish within five minutes, in one attempt.',
    unknown_fields: 'refused',
    answers: {
      200: z
        .object({ login_id: id.meta({ description: 'Send it with the response.' }), options: requestOptions })
        .meta({ id: 'PasskeyLogin' }),
    },
  }),
  finishPasskeyLogin: route({
    method: 'POST',
    path: '/api/passkeys/login/finish',
    action: 'session.open',
    tag: 'Passkeys',
    summary: 'Finish a sign-in with a passkey',
    description:
      'All failures have the same error. After twenty failures from an address in a minute, further attempts are delayed (429 with `Retry-After`).',
    body: z.object({ login_id: bounded(sharedLimits.name_chars_max), response: loginResponse }),
    unknown_fields: 'refused',
    answers: { 200: signedIn },
    errors: ['invalidPasskey', 'tooManyAttempts'],
  }),
  renamePasskey: route({
    method: 'PATCH',
    path: '/api/passkeys/{passkey_id}',
    action: 'self.change',
    tag: 'Passkeys',
    summary: 'Rename a passkey',
    body: z.object({ name }),
    unknown_fields: 'ignored',
    answers: { 200: passkeyRecord },
    errors: ['nameRequired', 'passkeyNotFound'],
  }),
  deletePasskey: route({
    method: 'DELETE',
    path: '/api/passkeys/{passkey_id}',
    action: 'self.change',
    tag: 'Passkeys',
    summary: 'Remove a passkey',
    description:
      'The passkey can no longer sign in; existing sign-ins stay. Not for API tokens. A wrong password counts as a failed sign-in.',
    body: z.object({ current_password: currentPassword }),
    unknown_fields: 'ignored',
    answers: { 204: null },
    errors: ['notAllowed', 'passwordRequired', 'invalidLogin', 'tooManyAttempts', 'passkeyNotFound'],
  }),
};
