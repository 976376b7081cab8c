/** `svc login`, `logout`, `join`, `join-link`: how a person comes in, and where the token is kept. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import type { Command } from 'commander';
import { Problem } from '../domain/problem.ts';
import { Api, type ApiOptions, baseUrl, connect, connectOpen, localUrl, planeUrl } from './api.ts';
import type { Context } from './context.ts';
import { dropCredential, readCredentials, storeCredential } from './credentials.ts';
import { exitCodes, Failure, failed, usage } from './failure.ts';
import { leaf, localFlags, remote, withLocal } from './options.ts';
import { printJson, printRecord, say } from './output.ts';
import { ask, firstLine, password } from './prompt.ts';
import { visible } from './terminal.ts';

type Options = ApiOptions & { json?: boolean };
interface LoginOptions extends Options {
  username?: string;
  passwordFile?: string;
  withToken?: boolean;
}
interface JoinOptions extends LoginOptions {
  pinFile?: string;
  linkFile?: string;
}

export function addLogin(program: Command, context: Context): void {
  const { io, local } = context;

  withLocal(leaf(program, 'login [url]', 'sign in to a plane; the token is kept for this user'))
    .option('-u, --username <name>', 'who signs in')
    .option('--password-file <file>', 'the password is the first line of this file (-: standard input)')
    .option('--with-token', 'read an API token from standard input instead')
    .action(async (url: string | undefined, options: LoginOptions) => {
      const target = url === undefined ? await planeUrl(context, options) : baseUrl(url);
      if (options.withToken) return withToken(target, options);
      const open = new Api(target, null, io);
      const username = options.username ?? (await ask(io, 'Username'));
      const secret = await password(io, 'Password', options.passwordFile);
      const signedIn = await open.call('login', { body: { username, password: secret } });
      await keep(target, signedIn.token, signedIn.user.username, options);
    });

  remote(program, 'logout', 'end the token and forget it').action(async (options: Options) => {
    const url = await planeUrl(context, options);
    // Not the one in SVC_TOKEN, which is kept elsewhere.
    const kept = (await readCredentials(io)).hosts[url];
    if (!kept) throw failed(`not signed in to ${url}`);
    const ended = await new Api(url, kept.token, io).call('logout', {}).then(
      () => true,
      (error) => {
        if (error instanceof Problem && error.kind === 'unauthenticated') return true;
        // An API token may lack the scope to end itself.
        if (error instanceof Problem && error.kind === 'forbidden') return false;
        throw error;
      },
    );
    await dropCredential(io, url);
    say(io, `signed out of ${url}`);
    if (!ended) say(io, 'the API token is still valid: to end it, run svc tokens delete with another token');
  });

  remote(program, 'whoami', 'who is signed in, and where').action(async (options: Options) => {
    const api = await connect(context, options);
    await printRecord(io, { url: api.url, ...(await api.call('getMe', {})) }, options);
  });

  remote(program, 'join', 'create the root user from here, with the PIN of the first start')
    .option(
      '--link-file <file>',
      'the join link is the first line of this file; default: the one of this machine',
    )
    .option('-u, --username <name>', 'name of the root user')
    .option('--password-file <file>', 'the password is the first line of this file (-: standard input)')
    .option('--pin-file <file>', 'the PIN is the first line of this file; default: asked')
    .action(async (options: JoinOptions) => {
      const { url, token } = await joinLink(options);
      const { pinFile } = options;
      const pin = pinFile === undefined ? await ask(io, 'PIN') : await firstLine(io, pinFile);
      const username = options.username ?? (await ask(io, 'Username'));
      const secret = await password(io, 'Password', options.passwordFile, { twice: true });
      const open = new Api(url, null, io);
      const signedIn = await open.call('join', {
        body: { token, pin: pin.replace(/\s/g, ''), username, password: secret },
      });
      await keep(url, signedIn.token, signedIn.user.username, options);
    });

  remote(
    program,
    'join-link',
    'show the link and PIN for creating the root user; run it as the user of the service',
  ).action(async (options: Options) => {
    const named = options.url ?? (io.env.SVC_URL || undefined);
    const open = await connectOpen(context, { ...options, url: named ?? localUrl(context, options) });
    const { file } = await open.call('createJoinChallenge', {});
    const challenge = await readChallenge(file);
    if (options.json) return printJson(io, challenge);
    const { url, pin, expires_at } = challenge;
    await printRecord(io, { open: url, pin, valid_until: expires_at }, options);
  });

  async function withToken(url: string, options: LoginOptions): Promise<void> {
    const token = (await readAll(io.stdin)).trim();
    if (token === '') throw usage('standard input holds no token');
    const me = await new Api(url, token, io).call('getMe', {});
    await keep(url, token, me.username, options);
  }

  async function keep(url: string, token: string, username: string, options: Options): Promise<void> {
    await storeCredential(io, url, { token, username });
    if (options.json) await printJson(io, { url, username });
    else say(io, visible(`signed in to ${url} as ${username}`));
  }

  /** What the service wrote into its data directory, which only its user and the machine's root can read. */
  async function readChallenge(
    file: string,
  ): Promise<Record<'url' | 'token' | 'pin' | 'expires_at', string>> {
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw failed(`cannot read ${file} (${error.code}): run svc join-link as the user of the service`);
    });
    return JSON.parse(text);
  }

  /** The link names the plane and carries the token in its fragment. */
  async function joinLink(options: JoinOptions): Promise<{ url: string; token: string }> {
    if (options.linkFile === undefined) {
      const data_dir = local.loadConfig(localFlags(options)).get('data_dir');
      const text = await readFile(join(data_dir, 'join.json'), 'utf8').catch(() => null);
      if (text === null) {
        throw new Failure(
          exitCodes.failed,
          `no join link in ${data_dir}: start svc, or make a new link with svc join-link`,
        );
      }
      const { url, token } = JSON.parse(text);
      return { url: baseOf(String(url)), token: String(token) };
    }
    const link = await firstLine(io, options.linkFile);
    const token = /#t=([\w-]+)$/.exec(link)?.[1];
    if (token === undefined) throw usage('--link-file must hold the whole join link, with what follows #');
    return { url: baseOf(link), token };
  }

  function baseOf(link: string): string {
    return baseUrl(link.replace(/\/join#.*$/, ''));
  }
}
