/** HTTP handlers of the passkeys. */
import { idFrom } from '../../base/ids.ts';
import type { Handlers } from '../../server/call.ts';
import { readClient } from '../tokens/service.ts';
import type { Passkeys } from './service.ts';

type PasskeyOperations =
  | 'getRelyingParty'
  | 'startPasskeyRegistration'
  | 'finishPasskeyRegistration'
  | 'startPasskeyLogin'
  | 'finishPasskeyLogin'
  | 'renamePasskey'
  | 'deletePasskey';

export function passkeyHandlers(passkeys: Passkeys): Pick<Handlers, PasskeyOperations> {
  return {
    getRelyingParty: () => {
      const { party, reason } = passkeys.relyingParty();
      return { rp_id: party?.id ?? null, origin: party?.origin ?? null, reason };
    },
    startPasskeyRegistration: async ({ caller, body, headers }) => ({
      options: await passkeys.startRegistration(caller, { ...body, origin: headers.origin }),
    }),
    finishPasskeyRegistration: async ({ caller, body, idempotency_key }) => {
      const id = idempotency_key === null ? undefined : idFrom('pky', caller.user_id, idempotency_key);
      const created = await passkeys.finishRegistration(caller, { id, ...body });
      return { location: `/api/passkeys/${created.id}`, body: created };
    },
    startPasskeyLogin: (call) => passkeys.startLogin(readClient(call), call.headers.origin),
    finishPasskeyLogin: (call) =>
      passkeys.finishLogin(call.body.login_id, call.body.response, readClient(call)),
    renamePasskey: ({ caller, params, body }) => passkeys.rename(caller, params.passkey_id, body.name),
    deletePasskey: async ({ caller, params, body }) => {
      await passkeys.remove(caller, params.passkey_id, body.current_password);
    },
  };
}
