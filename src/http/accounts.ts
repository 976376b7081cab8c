/** Accounts over HTTP: signing in and out, the caller's own account, users and the audit log. */
import type { IncomingHttpHeaders } from 'node:http';
import { idFrom } from '../base/ids.ts';
import type { User } from '../domain/user.ts';
import type { Accounts } from '../services/accounts.ts';
import type { Audit } from '../services/audit.ts';
import type { Join } from '../services/join.ts';
import type { Passkeys } from '../services/passkeys.ts';
import type { Client, Tokens } from '../services/tokens.ts';
import type { Handlers } from './call.ts';
import { asList } from './list.ts';

type AccountOperations =
  | 'join'
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
  | 'deleteUser'
  | 'listAudit'
  | 'verifyAudit';

export function accountHandlers(deps: {
  accounts: Accounts;
  audit: Audit;
  join: Join;
  passkeys: Passkeys;
  tokens: Tokens;
  /** Where people reach this service, without a slash at the end: the join link begins with it. */
  base_url(): string;
}): Pick<Handlers, AccountOperations> {
  const { accounts, audit, join, passkeys, tokens, base_url } = deps;
  const me = async (user: User) => ({ ...user, passkeys: await passkeys.list(user.id) });
  return {
    join: {
      before: () => join.refuseOnceDone(),
      handle: async (call) => ({ location: '/api/me', body: await join.join(call.body, clientOf(call)) }),
    },
    createJoinChallenge: ({ ip }) => join.requestChallenge(base_url(), ip),
    login: (call) => accounts.login(call.body.username, call.body.password, clientOf(call)),
    logout: async ({ caller }) => {
      await tokens.logout(caller);
    },
    refreshToken: ({ caller }) => tokens.refresh(caller),
    getMe: async ({ caller }) => me(await accounts.me(caller)),
    changePassword: async ({ caller, body }) =>
      me(await accounts.changePassword(caller, body.current_password, body.new_password)),
    listSignIns: async ({ caller, query }) => asList(query, await tokens.listSignIns(caller, query)),
    endSignIn: async ({ caller, params }) => {
      await tokens.endSignIn(caller, params.sign_in_id);
    },
    listTokens: async ({ caller, query }) => asList(query, await tokens.listApi(caller, query)),
    createToken: async ({ caller, body, idempotency_key }) => {
      const id = idempotency_key === null ? undefined : idFrom('tok', caller.user_id, idempotency_key);
      const expires_at = millis(body.expires_at) ?? null;
      const made = await tokens.createApi(caller, { ...body, id, expires_at });
      return { location: `/api/tokens/${made.id}`, body: made };
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
    listAudit: async ({ query }) => {
      const filter = { ...query, since: millis(query.since), until: millis(query.until) };
      return asList(query, await audit.list(filter, query));
    },
    verifyAudit: ({ query, signal }) => audit.verify(signal, query.head),
  };
}

/** Who signs in, from where. */
export function clientOf(call: { ip: string | null; headers: IncomingHttpHeaders }): Client {
  return { ip: call.ip, user_agent: call.headers['user-agent'] ?? null };
}

function millis(time: string | null | undefined): number | undefined {
  return time === null || time === undefined ? undefined : Date.parse(time);
}
