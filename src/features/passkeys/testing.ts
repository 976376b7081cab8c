/** Passkeys for tests, with the services of accounts. */
import { AccountsFixture } from '../../testing/accounts.ts';
import type { RelyingPartyState } from './relying-party.ts';
import { Passkeys } from './service.ts';

export interface PasskeysFixture {
  fixture: AccountsFixture;
  passkeys: Passkeys;
  /** Where passkeys work; a test may change it. */
  where: { relying_party: RelyingPartyState };
}

export async function openPasskeysFixture(): Promise<PasskeysFixture> {
  const fixture = await AccountsFixture.open();
  const { store, clock, audit, tokens, passwords, accounts } = fixture;
  const party = { id: 'svc.example', origin: 'https://svc.example', name: 'svc' };
  const where = { relying_party: { party, reason: null } as RelyingPartyState };
  const passkeys = new Passkeys({
    ...{ store, clock, audit, tokens, passwords, accounts },
    relyingParty: () => where.relying_party,
  });
  return { fixture, passkeys, where };
}
