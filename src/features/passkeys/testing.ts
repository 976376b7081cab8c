/** Passkeys for tests, with the services of accounts. */
import { AccountsFixture } from '../../testing/accounts.ts';
import type { Place } from './relying-party.ts';
import { Passkeys } from './service.ts';

export interface PasskeysFixture {
  fixture: AccountsFixture;
  passkeys: Passkeys;
  /** Where passkeys work; a test may change it. */
  where: { place: Place };
}

export async function openPasskeysFixture(): Promise<PasskeysFixture> {
  const fixture = await AccountsFixture.open();
  const { store, clock, audit, tokens, passwords, accounts } = fixture;
  const party = { id: 'svc.example', origin: 'https://svc.example', name: 'svc' };
  const where = { place: { party, reason: null } as Place };
  const passkeys = new Passkeys({
    ...{ store, clock, audit, tokens, passwords, accounts },
    place: () => where.place,
  });
  return { fixture, passkeys, where };
}
