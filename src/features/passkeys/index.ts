/** Passkeys: signing in with WebAuthn instead of a password. */
import type { AccountsFeature } from '../accounts/index.ts';
import type { Core, Feature } from '../feature.ts';
import type { Tokens } from '../tokens/service.ts';
import { passkeyHandlers } from './http.ts';
import { type RelyingPartyState, resolveRelyingParty } from './relying-party.ts';
import { Passkeys } from './service.ts';

export function openPasskeys(
  core: Core,
  { accounts: { accounts }, tokens }: { accounts: AccountsFeature; tokens: Tokens },
): Feature {
  let known: RelyingPartyState | null = null;
  const relyingParty = () => {
    known ??= resolveRelyingParty(core.config, core.listening_url());
    return known;
  };
  const passkeys = new Passkeys({ ...core, accounts, tokens, relyingParty });
  return {
    name: 'passkeys',
    routes: passkeyHandlers(passkeys),
    extensions: { passkeysOf: (user_id) => passkeys.list(user_id) },
    warnings: () => {
      const { reason } = relyingParty();
      return reason !== null && core.config.get('web.rp_id') !== null ? [`no passkeys: ${reason}`] : [];
    },
    sweep: () => passkeys.sweep(),
  };
}
