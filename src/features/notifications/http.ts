/** HTTP handlers for notifications. */

import type { Handlers } from '../../server/call.ts';
import { asList } from '../../server/list.ts';
import type { Push } from './service.ts';

type PushOperations =
  | 'getPushKey'
  | 'listPushSubscriptions'
  | 'createPushSubscription'
  | 'deletePushSubscription'
  | 'testPush'
  | 'rotatePushKeys';

export function pushHandlers(push: Push): Pick<Handlers, PushOperations> {
  return {
    getPushKey: async () => ({ public_key: await push.publicKey() }),
    listPushSubscriptions: async ({ caller, query }) => asList(query, await push.list(caller, query)),
    createPushSubscription: async ({ caller, body, headers }) => {
      const created = await push.subscribe(caller, body, headers['user-agent'] ?? null);
      return { location: `/api/push/subscriptions/${created.id}`, body: created };
    },
    deletePushSubscription: async ({ caller, params }) => {
      await push.unsubscribe(caller, params.subscription_id);
    },
    testPush: async ({ caller, body }) => ({ results: await push.test(caller, body.subscription_id) }),
    rotatePushKeys: async ({ caller }) => ({ public_key: await push.rotate(caller) }),
  };
}
