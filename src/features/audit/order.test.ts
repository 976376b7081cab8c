/** The chain of the audit log on PostgreSQL, where writes overlap. */
import { expect } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { holdWrite } from '../../testing/held-write.ts';
import { postgresTest as test } from '../../testing/postgres.ts';
import { stores } from '../../testing/stores.ts';
import { Audit } from './service.ts';

test('writes that overlap add their records in the order of their commits, and need not run again', async () => {
  const { store, remove } = await stores[1].open();
  const audit = new Audit({ store, clock: systemClock, log: silentLog });
  const record = (user_id: string) => ({ event: 'user_login', user_id, ip: null }) as const;
  let runs = 0;
  const held = await holdWrite(store, async (tx) => {
    runs++;
    await audit.record(tx, record('usr_first'));
    await audit.record(tx, record('usr_first_too'));
  });
  const once = runs;
  runs = 0;
  const users = Array.from({ length: 8 }, (_, i) => `usr_${i}`);
  await Promise.all(
    users.map((user_id) =>
      store.write((tx) => {
        runs++;
        return audit.record(tx, record(user_id));
      }),
    ),
  );
  expect(runs).toBe(users.length * once);
  await held.commit();
  expect(await audit.verify()).toMatchObject({ records: 10, broken_id: null });
  const { items } = await audit.list({}, {});
  expect(items.map(({ id }) => id)).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
  expect(items.slice(0, 2).map(({ user_id }) => user_id)).toEqual(['usr_first_too', 'usr_first']);
  expect(
    items
      .slice(2)
      .map(({ user_id }) => user_id)
      .toSorted(),
  ).toEqual(users);
  await remove();
});
