/** Push notifications to people's devices. */
import type { Config } from '../../core/config.ts';
import type { Core, Feature } from '../feature.ts';
import { pushHandlers } from './http.ts';
import { deleteSubscriptionsOfToken, deleteSubscriptionsOfUser } from './queries.ts';
import { Push } from './service.ts';

export function openNotifications(core: Core): Feature {
  const { config } = core;
  const push = new Push({ ...core, own_origins: config.get('push.origins'), subject: getContact(config) });
  return {
    name: 'notifications',
    routes: pushHandlers(push),
    facts: { push: push.facts() },
    timers: push.timers(),
    intents: push.intents(),
    extensions: { onTokenRevoked: deleteSubscriptionsOfToken, onTokensRevoked: deleteSubscriptionsOfUser },
    sweep: () => push.sweep(),
    close: () => push.close(),
  };
}

/** The contact for push services, which require one. */
function getContact(config: Config): string {
  const origin = config.get('web.rp_origin');
  const fallback = origin?.startsWith('https:') ? origin : 'mailto:svc@svc.invalid';
  return config.get('push.subject') ?? fallback;
}
