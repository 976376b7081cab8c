/** HTTP handlers for signing in and out, the caller's own account, and users. */
import { idFrom } from '../../base/ids.ts';
import type { Handlers } from '../../server/call.ts';
import { asList } from '../../server/list.ts';
import type { PasskeyRecord } from '../feature.ts';
import { readClient, type Tokens } from '../tokens/service.ts';
import type { Join } from './join.ts';
import type { Caller, User } from './rules.ts';
import type { Accounts } from './service.ts';

type AccountOperations =
  | 'join'
  | 'checkJoinPin'
  | 'createJoinChallenge'
  | 'login'
  | 'logout'
  | 'refreshToken'
  | 'getMe'
  | 'changePassword'
  | 'listSignIns'
  | 'endSignIn'
  | 'listTokens'
  | 'createToken'
  | 'deleteToken'
  | 'listUsers'
  | 'createUser'
  | 'getUser'
  | 'updateUser'
  | 'deleteUser';

export function accountHandlers(deps: {
  accounts: Accounts;
  join: Join;
  tokens: Tokens;
  /** The URL at which people reach this service, without a trailing slash; the join link begins with it. */
  base_url(): string;
  passkeysOf(user_id: string): Promise<PasskeyRecord[]>;
}): Pick<Handlers, AccountOperations> {
  const { accounts, join, tokens, base_url, passkeysOf } = deps;
  /** Without passkeys for a token that is limited to agents or teams. */
  const me = async (user: User, { grant }: Caller) => ({
    ...user,
    passkeys: grant?.limits ? [] : await passkeysOf(user.id),
  });
  return {
    join: {
      before: () => join.refuseOnceDone(),
      handle: async (call) => ({ location: '/api/me', body: await join.join(call.body, readClient(call)) }),
    },
    checkJoinPin: {
      before: () => join.refuseOnceDone(),
      handle: async ({ body, ip }) => {
        await join.checkPin(body, ip);
      },
    },
    createJoinChallenge: ({ ip }) => join.requestChallenge(base_url(), ip),
    login: (call) => accounts.login(call.body.username, call.body.password, readClient(call)),
    logout: async ({ caller }) => {
      await tokens.logout(caller);
    },
    refreshToken: ({ caller }) => tokens.refresh(caller),
    getMe: async ({ caller }) => me(await accounts.me(caller), caller),
    changePassword: async ({ caller, body }) =>
      me(await accounts.changePassword(caller, body.current_password, body.new_password), caller),
    listSignIns: async ({ caller, query }) => asList(query, await tokens.listSignIns(caller, query)),
    endSignIn: async ({ caller, params }) => {
      await tokens.endSignIn(caller, params.sign_in_id);
    },
    listTokens: async ({ caller, query }) => asList(query, await tokens.listApi(caller, query)),
    createToken: async ({ caller, body, idempotency_key }) => {
      const id = idempotency_key === null ? undefined : idFrom('tok', caller.user_id, idempotency_key);
      const expires_at = body.expires_at == null ? null : Date.parse(body.expires_at);
      const created = await tokens.createApi(caller, { ...body, id, expires_at });
      return { location: `/api/tokens/${created.id}`, body: created };
    },
    deleteToken: async ({ caller, params }) => {
      await tokens.deleteApi(caller, params.token_id);
    },
    listUsers: async ({ query }) => asList(query, await accounts.list(query)),
    createUser: async ({ caller, body, idempotency_key }) => {
      const id = idempotency_key === null ? undefined : idFrom('usr', caller.user_id, idempotency_key);
      const user = await accounts.create(caller, { id, ...body });
      return { location: `/api/admin/users/${user.id}`, body: user };
    },
    getUser: ({ params }) => accounts.get(params.user_id),
    updateUser: ({ caller, params, body }) => accounts.update(caller, params.user_id, body),
    deleteUser: async ({ caller, params }) => {
      await accounts.delete(caller, params.user_id);
    },
  };
}
