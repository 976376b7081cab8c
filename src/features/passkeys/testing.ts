/** Passkeys for tests, with the services of accounts. */
import { AccountsRoom } from '../../testing/accounts.ts';
import type { Place } from './relying-party.ts';
import { Passkeys } from './service.ts';

export interface PasskeysFixture {
  room: AccountsRoom;
  passkeys: Passkeys;
  /** Where passkeys work; a test may change it. */
  where: { place: Place };
}

export async function openPasskeysFixture(): Promise<PasskeysFixture> {
  const room = await AccountsRoom.open();
  const { store, clock, audit, tokens, passwords, accounts } = room;
  const party = { id: 'svc.example', origin: 'https://svc.example', name: 'svc' };
  const where = { place: { party, reason: null } as Place };
  const passkeys = new Passkeys({
    ...{ store, clock, audit, tokens, passwords, accounts },
    place: () => where.place,
  });
  return { room, passkeys, where };
}
