/** API of notifications on people's devices, with Web Push. */
import { z } from 'zod';
import { bounded, id, list, pageQuery, time } from '../../api/fields.ts';
import { route } from '../../api/route.ts';
import { limits } from './limits.ts';
import { pushKinds, pushStatuses } from './rules.ts';

const kinds = z.array(z.enum(pushKinds, { error: 'must be review, agent_failed or run_ended' }));

const pushSubscription = z
  .object({
    id,
    user_agent: z.string().nullable(),
    service: z.string().meta({ description: 'Host of its push service.' }),
    fingerprint: z.string().meta({
      description: 'SHA-256 of the endpoint, base64url: a browser uses it to find its own device.',
    }),
    kinds,
    with_commands: z.boolean(),
    of_others: z.boolean(),
    status: z
      .enum(pushStatuses)
      .meta({ description: '`expired`: it gets no notifications until it subscribes again.' }),
    failures: z
      .int()
      .meta({ description: 'Number of consecutive messages that its push service did not accept.' }),
    last_error: z.string().nullable(),
    last_success_at: time.nullable(),
    current: z.boolean().meta({ description: 'Whether the token of this request subscribed it.' }),
    created_at: time,
  })
  .meta({ id: 'PushSubscription' });

const pushKey = z
  .object({
    public_key: z
      .string()
      .meta({ description: 'The `applicationServerKey` for browsers: a P-256 point, base64url.' }),
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
    summary: 'Get the key that browsers subscribe with',
    answers: { 200: pushKey },
  }),
  listPushSubscriptions: route({
    method: 'GET',
    path: '/api/push/subscriptions',
    action: 'self.list',
    tag: 'Notifications',
    summary: "List the caller's devices",
    query: z.object(pageQuery),
    answers: { 200: list(pushSubscription) },
  }),
  createPushSubscription: route({
    method: 'POST',
    path: '/api/push/subscriptions',
    action: 'self.change',
    tag: 'Notifications',
    summary: 'Subscribe a device, or change its notifications',
    description:
      "Takes a browser's `PushSubscription` unchanged. A known endpoint is updated. The device is removed when the sign-in that subscribed it is revoked, but not when that sign-in expires.",
    body: z.object({
      endpoint,
      keys: z.object({ p256dh: key, auth: key }),
      expirationTime: z.number().nullish().meta({ description: 'Accepted but not used.' }),
      public_key: key
        .optional()
        .meta({ description: 'The key with which it subscribed; rejected unless it is the current one.' }),
      kinds: kinds.default([...pushKinds]).meta({ description: 'The kinds of notifications that it gets.' }),
      with_commands: z.boolean().default(false).meta({
        description: 'Whether a notification contains what an agent wants to do, in the words of the agent.',
      }),
      of_others: z
        .boolean()
        .default(false)
        .meta({ description: 'For root only: include agents and teams of other users.' }),
      replaces: endpoint
        .optional()
        .meta({ description: 'An endpoint of the caller that this one replaces.' }),
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
    summary: 'Remove a device',
    answers: { 204: null },
    errors: ['pushNotFound'],
  }),
  testPush: route({
    method: 'POST',
    path: '/api/push/test',
    action: 'self.change',
    tag: 'Notifications',
    summary: "Send a test notification to the caller's devices",
    description: 'Responds once their push services have responded. Only one test runs at a time.',
    body: z.object({
      subscription_id: id.optional().meta({ description: 'Test only this device.' }),
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
    summary: 'Create new keys for notifications',
    description:
      'Every device must subscribe again, which happens automatically when its user opens the web UI there. Until then, it gets no notifications.',
    unknown_fields: 'refused',
    answers: { 200: pushKey },
    idempotent: true,
  }),
};
