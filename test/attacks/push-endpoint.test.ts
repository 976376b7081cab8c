/** A user subscribes a push endpoint at an address of the plane's own machine. */
import { createECDH } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../src/client/client.ts';
import { ROOT, TestPlane } from '../../src/testing/plane.ts';

let plane: TestPlane;
let alice: Client;
beforeAll(async () => {
  plane = await TestPlane.open();
  const { password } = ROOT;
  await plane.client.call('createUser', { body: { username: 'alice', password } });
  const { token } = await plane.client.call('login', { body: { username: 'alice', password } });
  alice = new Client({ url: plane.url, token });
});
afterAll(() => plane.close());

function subscribe(endpoint: string) {
  const p256dh = createECDH('prime256v1').generateKeys('base64url');
  const keys = { p256dh, auth: Buffer.alloc(16, 7).toString('base64url') };
  return alice.call('createPushSubscription', { body: { endpoint, keys } as never });
}

test.each(['::7f00:1', '::127.0.0.1', '::a9fe:a9fe', '0:0:0:0:0:0:a00:1', '4000::1'])(
  'refuses an endpoint at [%s]',
  async (address) => {
    await expect(subscribe(`https://[${address}]/`)).rejects.toThrow('endpoint address is not allowed');
  },
);

test('accepts an endpoint at a global address', async () => {
  await expect(subscribe('https://[2606:4700::1111]/')).resolves.toMatchObject({
    service: '[2606:4700::1111]',
  });
});
