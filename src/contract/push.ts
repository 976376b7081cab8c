/** Notifications on people's devices, by Web Push. */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
import { pushKinds, pushStatuses } from '../domain/push.ts';
import { bounded, id, list, pageQuery, time } from './fields.ts';
import { route } from './route.ts';

const kinds = z.array(z.enum(pushKinds, { error: 'must be review, agent_failed or run_ended' }));

const pushSubscription = z
  .object({
    id,
    user_agent: z.string().nullable(),
    service: z.string().meta({ description: 'Host of the push service that its messages go through.' }),
    fingerprint: z.string().meta({
      description: 'SHA-256 of the endpoint, base64url: by it a browser knows which one it is.',
    }),
    kinds,
    with_commands: z.boolean(),
    of_others: z.boolean(),
    status: z
      .enum(pushStatuses)
      .meta({ description: '`expired`: it is told nothing until it subscribes again.' }),
    failures: z.int().meta({ description: 'Messages in a row that its push service did not take.' }),
    last_error: z.string().nullable(),
    last_success_at: time.nullable(),
    current: z.boolean().meta({ description: 'Subscribed by the token that made this request.' }),
    created_at: time,
  })
  .meta({ id: 'PushSubscription' });

const pushKey = z
  .object({
    public_key: z
      .string()
      .meta({ description: 'What browsers take as `applicationServerKey`: a P-256 point, base64url.' }),
  })
  .meta({ id: 'PushKey' });

const endpoint = bounded(limits.push_endpoint_chars_max);
const key = bounded(limits.push_key_chars_max);

export const pushRoutes = {
  getPushKey: route({
    method: 'GET',
    path: '/api/push/key',
    action: 'self.read',
    tag: 'Notifications',
    summary: 'The key that browsers subscribe with',
    answers: { 200: pushKey },
  }),
  listPushSubscriptions: route({
    method: 'GET',
    path: '/api/push/subscriptions',
    action: 'self.list',
    tag: 'Notifications',
    summary: "The caller's devices",
    query: z.object(pageQuery),
    answers: { 200: list(pushSubscription) },
  }),
  createPushSubscription: route({
    method: 'POST',
    path: '/api/push/subscriptions',
    action: 'self.change',
    tag: 'Notifications',
    summary: 'Subscribe a device, or change what it is told',
    description:
      "Takes a browser's `PushSubscription` as it is. A known endpoint is changed. The device is forgotten when the sign-in that subscribed it is ended by somebody, not when it grows old.",
    body: z.object({
      endpoint,
      keys: z.object({ p256dh: key, auth: key }),
      expirationTime: z.number().nullish().meta({ description: 'Accepted and not used.' }),
      public_key: key
        .optional()
        .meta({ description: 'The key that it was subscribed with; refused unless it is the one of now.' }),
      kinds: kinds.default([...pushKinds]).meta({ description: 'What it is told of.' }),
      with_commands: z
        .boolean()
        .default(false)
        .meta({ description: 'Whether a message says what an agent wants to do, in its own words.' }),
      of_others: z
        .boolean()
        .default(false)
        .meta({ description: "Root's only: also of agents and teams that are not the caller's." }),
      replaces: endpoint
        .optional()
        .meta({ description: "An endpoint of the caller's that this one takes the place of." }),
    }),
    unknown_fields: 'ignored',
    answers: { 201: pushSubscription },
    errors: [
      'pushEndpointInvalid',
      'pushEndpointRefused',
      'pushKeysInvalid',
      'pushKeyChanged',
      'pushTaken',
      'tooManyPush',
    ],
    idempotent: true,
  }),
  deletePushSubscription: route({
    method: 'DELETE',
    path: '/api/push/subscriptions/{subscription_id}',
    action: 'self.change',
    tag: 'Notifications',
    summary: 'Forget a device',
    answers: { 204: null },
    errors: ['pushNotFound'],
  }),
  testPush: route({
    method: 'POST',
    path: '/api/push/test',
    action: 'self.change',
    tag: 'Notifications',
    summary: "Send a test to the caller's devices",
    description: 'Answers when their push services have. One test at a time.',
    body: z.object({
      subscription_id: id.optional().meta({ description: 'Only this one.' }),
    }),
    unknown_fields: 'ignored',
    answers: {
      200: z
        .object({
          results: z.array(z.object({ subscription_id: id, ok: z.boolean(), error: z.string().nullable() })),
        })
        .meta({ id: 'PushTest' }),
    },
    errors: ['pushNotFound'],
    idempotent: true,
  }),
  rotatePushKeys: route({
    method: 'POST',
    path: '/api/admin/push/keys/rotate',
    action: 'push.manage',
    tag: 'Notifications',
    summary: 'Make new keys for notifications',
    description:
      'Every device has to subscribe again, which it does by itself when its user opens the web UI there. Until then it is told nothing.',
    unknown_fields: 'refused',
    answers: { 200: pushKey },
  }),
};
