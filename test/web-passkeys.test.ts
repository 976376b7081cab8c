/**
 * Passkeys in a real browser with a virtual authenticator: the offer after joining, signing in with one click or none,
 * renaming and removing; and a link to where passkeys work.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { Client } from '../src/client/client.ts';
import {
  browserTest,
  longBrowserTest,
  sharedBrowser,
  signIn,
  type WatchedPage,
} from '../src/testing/browser.ts';
import { ROOT, TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.prepare();
  await plane.start();
});
afterAll(async () => {
  await plane.close();
});

const joinFile = () => join(plane.data_dir, 'join.json');

/** A token of root, who joins first if necessary. */
async function passwordToken(): Promise<string> {
  if (existsSync(joinFile())) await plane.join();
  return (await new Client({ url: plane.url }).call('login', { body: ROOT })).token;
}

/** Not for another test, because an authenticator stays in its page. */
const open = (): Promise<WatchedPage> => browser.open(plane, { separate: true });

/** The same service under a host name for which passkeys work. */
const named = () => plane.url.replace('127.0.0.1', 'localhost');

interface Key {
  credentials(): Promise<unknown[]>;
}

/** Adds an authenticator whose user is present and verified, and consents. */
async function plugIn(page: Page): Promise<Key> {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
    },
  });
  return {
    credentials: async () => (await cdp.send('WebAuthn.getCredentials', { authenticatorId })).credentials,
  };
}

const WITHOUT_AUTOFILL = `PublicKeyCredential.isConditionalMediationAvailable = async () => false`;

/** The browser offers a passkey, which nobody chooses, until the page cancels that. */
const UNUSED_OFFER = `
  PublicKeyCredential.isConditionalMediationAvailable = async () => true;
  navigator.credentials.get = ({ signal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
`;

async function signOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Sign out' }).first().click();
  await page.waitForURL(`${named()}/login?to=${encodeURIComponent('/settings/passkeys')}`);
  await page.getByLabel('Password').waitFor();
}

browserTest(
  'a passkey is offered after joining, signs in with one click, and can be renamed and removed',
  async () => {
    const { url, pin } = JSON.parse(await readFile(joinFile(), 'utf8'));
    const { page, errors } = await open();
    await page.addInitScript(WITHOUT_AUTOFILL);
    const key = await plugIn(page);
    await page.goto(url.replace('127.0.0.1', 'localhost'));
    await page.getByLabel('PIN from the terminal').fill(pin);
    await page.getByLabel('Username').fill(ROOT.username);
    await page.getByLabel('Password').fill(ROOT.password);
    await page.getByRole('button', { name: 'Create root user' }).click();
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.waitForURL(`${named()}/agents/new`);
    expect(await key.credentials()).toEqual([
      expect.objectContaining({ rpId: 'localhost', isResidentCredential: true }),
    ]);

    await page.goto(`${named()}/settings/passkeys`);
    await page.getByText('never used').waitFor();
    await signOut(page);
    await page.getByLabel('Username').fill(ROOT.username);
    await page.getByLabel('Password').fill('not it, sorry');
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByText('invalid username or password', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    // The page from before the sign-out.
    await page.waitForURL(`${named()}/settings/passkeys`);
    await page.getByText(/· used /).waitFor();

    await page.getByRole('button', { name: /^Rename/ }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('Laptop');
    await dialog.getByRole('button', { name: 'Rename' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Remove Laptop' }).click();
    // This sign-in did not use the password.
    await dialog.getByRole('button', { name: 'Remove passkey' }).click();
    await dialog.getByLabel('Current password').fill('not it, sorry');
    await dialog.getByRole('button', { name: 'Remove passkey' }).click();
    await dialog.getByText('invalid username or password', { exact: true }).waitFor();
    await dialog.getByLabel('Current password').fill(ROOT.password);
    await dialog.getByRole('button', { name: 'Remove passkey' }).click();
    await page.getByText('No passkeys yet.').waitFor();

    // The device still has the passkey, but the service does not know it anymore.
    await signOut(page);
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await page.getByText('passkey was not accepted', { exact: true }).waitFor();
    expect(errors.filter((error) => !error.includes('Failed to load resource'))).toEqual([]);
  },
);

longBrowserTest(
  'a passkey that was added in the settings signs in from the form without a click',
  async () => {
    const token = await passwordToken();
    const { page } = await open();
    await plugIn(page);
    await signIn(page, plane, { token, origin: named() });
    await page.goto(`${named()}/settings/passkeys`);
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('Security key');
    await dialog.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByText('Security key', { exact: true }).waitFor();
    // The same device does not create a second passkey.
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await dialog.getByRole('button', { name: 'Add a passkey' }).click();
    await dialog.getByText('This device already has a passkey for your account.').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();

    await page.getByRole('button', { name: 'Sign out' }).first().click();
    await page.waitForURL(`${named()}/settings/passkeys`);
    await page.getByText(/· used /).waitFor();
  },
);

browserTest(
  'the offer of passkeys is renewed after the device has slept for longer than it is valid',
  async () => {
    await passwordToken();
    const { page } = await open();
    await page.addInitScript(UNUSED_OFFER);
    let offers = 0;
    page.on('request', (request) => {
      if (request.url().endsWith('/api/passkeys/login/start')) offers++;
    });
    await page.clock.install();
    await page.goto(`${named()}/login`);
    await expect.poll(() => offers).toBe(1);
    let slept_ms = 0;
    const offersAfterSleep = async () => {
      // The page may have sent the request, but not yet received its answer.
      slept_ms += 10 * 60_000;
      await page.clock.setSystemTime(Date.now() + slept_ms);
      return offers;
    };
    await expect.poll(offersAfterSleep, { interval: 500 }).toBeGreaterThan(1);
  },
);

browserTest(
  'where passkeys cannot work, the page links to where they do, and the password signs in',
  async () => {
    await passwordToken();
    const { page } = await open();
    await page.goto(`${plane.url}/login?to=/settings/passkeys`);
    const link = page.getByRole('link', { name: named() });
    expect(await link.getAttribute('href')).toBe(`${named()}/login?to=/settings/passkeys`);
    expect(await page.getByRole('button', { name: 'Use a passkey' }).count()).toBe(0);
    await page.getByLabel('Username').fill(ROOT.username);
    await page.getByLabel('Password').fill(ROOT.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL(`${plane.url}/settings/passkeys`);
    await link.waitFor();
    expect(await page.getByRole('button', { name: 'Add a passkey' }).count()).toBe(0);
  },
);
