/** Accounts: users, signing in with a password, and creating the first root user. */
import { join as joinPath } from 'node:path';
import { requestRate } from '../../server/rate.ts';
import type { Core, Feature } from '../feature.ts';
import type { Tokens } from '../tokens/service.ts';
import { accountHandlers } from './http.ts';
import { Join, type JoinChallenge } from './join.ts';
import { Passwords } from './passwords.ts';
import { Accounts } from './service.ts';

export interface AccountsFeature extends Feature {
  accounts: Accounts;
  /** Null once there is a root user. Call it after the HTTP listener has been opened. */
  joinChallenge(): Promise<JoinChallenge | null>;
}

export function openAccounts(core: Core, tokens: Tokens): AccountsFeature {
  const { config, settings, data_dir, extensions } = core;
  const passwords = new Passwords(() => ({
    min_length: settings.get('auth.min_password_length'),
    require_special_chars: settings.get('auth.require_special_chars'),
  }));
  const accounts = new Accounts({ ...core, tokens, passwords, rate: () => requestRate(settings) });
  const join = new Join({ ...core, accounts, passwords, file: joinPath(data_dir, 'join.json') });
  const base_url = () => config.get('web.rp_origin') ?? core.listening_url();
  const passkeysOf = (user_id: string) => extensions.passkeysOf(user_id);
  return {
    name: 'accounts',
    accounts,
    joinChallenge: () => join.ensureChallenge(base_url()),
    resources: { user_id: (_caller, _action, { user_id }) => accounts.get(user_id!) },
    routes: accountHandlers({ accounts, tokens, join, base_url, passkeysOf }),
    sweep: () => accounts.sweep(),
  };
}
