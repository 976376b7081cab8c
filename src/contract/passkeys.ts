/**
 * Passkeys (WebAuthn): where they work, adding one, signing in with one, naming and removing them. Options and responses
 * have the JSON form that browsers give them; which response is good, the service decides.
 */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
import { passkeyRecord, secretText, signedIn } from './accounts.ts';
import { bounded, foreign, id, name } from './fields.ts';
import { route } from './route.ts';

const relyingParty = z
  .object({
    rp_id: z.string().nullable().meta({ description: 'The domain that passkeys are made for.' }),
    origin: z.string().nullable().meta({ description: 'The one origin whose pages can use them.' }),
    reason: z.string().nullable().meta({ description: 'Why there can be none; null where there can.' }),
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
}).meta({ id: 'PasskeyRegistrationResponse', description: 'As `PublicKeyCredential.toJSON` has it.' });

const loginResponse = foreign({
  ...credential,
  response: foreign({
    clientDataJSON: bytes,
    authenticatorData: bytes,
    signature: bytes,
    userHandle: credentialId.nullable().default(null),
  }),
}).meta({ id: 'PasskeyLoginResponse', description: 'As `PublicKeyCredential.toJSON` has it.' });

const currentPassword = secretText.optional().meta({
  description: 'Needed unless this sign-in has shown the password within the last ten minutes.',
});

export const passkeyRoutes = {
  getRelyingParty: route({
    method: 'GET',
    path: '/api/passkeys/relying-party',
    action: 'session.open',
    tag: 'Passkeys',
    summary: 'Where passkeys work',
    answers: { 200: relyingParty },
  }),
  startPasskeyRegistration: route({
    method: 'POST',
    path: '/api/passkeys/registration/start',
    action: 'self.change',
    tag: 'Passkeys',
    summary: 'Begin to add a passkey',
    description:
      'Five minutes and one attempt remain to finish, with the token of this request. Not for API tokens. A wrong password counts as a failed sign-in.',
    body: z.object({ current_password: currentPassword }),
    unknown_fields: 'refused',
    answers: { 200: z.object({ options: creationOptions }).meta({ id: 'PasskeyRegistration' }) },
    errors: ['notAllowed', 'passwordRequired', 'invalidLogin', 'tooManyPasskeys'],
  }),
  finishPasskeyRegistration: route({
    method: 'POST',
    path: '/api/passkeys/registration/finish',
    action: 'self.change',
    tag: 'Passkeys',
    summary: 'Add the passkey',
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
    summary: 'Begin to sign in with a passkey',
    description: 'Five minutes and one attempt remain to finish.',
    unknown_fields: 'refused',
    answers: {
      200: z
        .object({ login_id: id.meta({ description: 'To be given back.' }), options: requestOptions })
        .meta({ id: 'PasskeyLogin' }),
    },
  }),
  finishPasskeyLogin: route({
    method: 'POST',
    path: '/api/passkeys/login/finish',
    action: 'session.open',
    tag: 'Passkeys',
    summary: 'Sign in with a passkey',
    description:
      'Whatever is wrong, the answer is the same. After twenty failures of an address in a minute attempts have to wait (429 with `Retry-After`).',
    body: z.object({ login_id: bounded(limits.name_chars_max), response: loginResponse }),
    unknown_fields: 'refused',
    answers: { 200: signedIn },
    errors: ['invalidPasskey'],
    secret_answer: true,
  }),
  renamePasskey: route({
    method: 'PATCH',
    path: '/api/passkeys/{passkey_id}',
    action: 'self.change',
    tag: 'Passkeys',
    summary: 'Give a passkey another name',
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
      'It signs nobody in from now on; sign-ins that it made stay. Not for API tokens. A wrong password counts as a failed sign-in.',
    body: z.object({ current_password: currentPassword }),
    unknown_fields: 'ignored',
    answers: { 204: null },
    errors: ['notAllowed', 'passwordRequired', 'invalidLogin', 'passkeyNotFound'],
  }),
};
