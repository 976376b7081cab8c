/** `svc login`, `logout`, `whoami`, `join`, `join-link`: signs in and out, creates the root user, and stores the token. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import type { Command } from 'commander';
import {
  type Api,
  type ApiOptions,
  baseUrl,
  connect,
  hasNoUsers,
  localUrl,
  openApi,
  planeUrl,
} from '../../../cli/api.ts';
import type { Context, Io } from '../../../cli/context.ts';
import { dropCredential, readCredentials, storeCredential } from '../../../cli/credentials.ts';
import { exitCodes, Failure, failed, usage, withExplanation } from '../../../cli/failure.ts';
import { addJsonCommand, localFlags, remote, withLocal } from '../../../cli/options.ts';
import { printJson, printRecord, printStatus } from '../../../cli/output.ts';
import { ask, firstLine, openStdin, password } from '../../../cli/prompt.ts';
import { printable } from '../../../cli/terminal.ts';
import { Problem, problems } from '../../../core/problem.ts';
import { offerRepositoryFolder } from './repository-folder.ts';

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
  addSignIn(program, context);
  addLogout(program, context);
  addWhoami(program, context);
  addJoin(program, context);
  addJoinLink(program, context);
}

function addSignIn(program: Command, context: Context): void {
  const { io } = context;
  withLocal(
    addJsonCommand(program, 'login [url]', 'sign in to a plane; the token is stored for your local user'),
  )
    .option('-u, --username <name>', 'user to sign in')
    .option('--password-file <file>', 'file with the password on its first line (-: stdin)')
    .option('--with-token', 'read an API token from stdin instead')
    .action(async (url: string | undefined, options: LoginOptions) => {
      const target = url === undefined ? await planeUrl(context, options) : baseUrl(url);
      if (options.withToken) return withToken(context, target, options);
      if (await hasNoUsers(context, options, target)) {
        throw new Failure(exitCodes.unauthenticated, 'there are no users yet: run svc join');
      }
      const open = await openApi(context, options, target, null);
      const username = options.username ?? (await ask(io, 'Username'));
      const secret = await password(io, 'Password', options.passwordFile);
      const signedIn = await open.call('login', { body: { username, password: secret } });
      await keep(context, target, signedIn.token, signedIn.user.username, options);
    });
}

function addLogout(program: Command, context: Context): void {
  const { io } = context;
  remote(program, 'logout', 'revoke the stored token and delete it from this machine').action(
    async (options: Options) => {
      const url = await planeUrl(context, options);
      // Not the token in SVC_TOKEN, which svc does not store.
      const stored = (await readCredentials(io)).hosts[url];
      if (!stored) throw failed(`not signed in to ${url}`);
      const api = await openApi(context, options, url, stored.token);
      const ended = await api.call('logout', {}).then(
        () => true,
        (error) => {
          if (error instanceof Problem && error.kind === 'unauthenticated') return true;
          // An API token may lack the scope to revoke itself.
          if (error instanceof Problem && error.kind === 'forbidden') return false;
          throw error;
        },
      );
      await dropCredential(io, url);
      if (options.json) return printJson(io, { url, revoked: ended });
      printStatus(io, `signed out of ${url}`);
      if (!ended)
        printStatus(
          io,
          'the API token is still valid; to revoke it, run svc tokens delete with another token',
        );
    },
  );
}

function addWhoami(program: Command, context: Context): void {
  const { io } = context;
  remote(program, 'whoami', 'show the signed-in user and the plane').action(async (options: Options) => {
    const api = await connect(context, options);
    await printRecord(io, { url: api.url, ...(await api.call('getMe', {})) }, options);
  });
}

function addJoin(program: Command, context: Context): void {
  const { io } = context;
  withLocal(addJsonCommand(program, 'join', 'create the root user with the PIN from the first start'))
    .option('--url <url>', "URL of the plane; default: that of --link-file, or of this machine's plane")
    .option('--link-file <file>', "file with the join link on its first line; default: this machine's link")
    .option('-u, --username <name>', 'name of the root user')
    .option('--password-file <file>', 'file with the password on its first line (-: stdin)')
    .option('--pin-file <file>', 'file with the PIN on its first line; default: prompt for it')
    .action(async (options: JoinOptions) => {
      const { url, token } = await joinLink(context, options);
      const open = await openApi(context, options, url, null);
      // Before the other questions, because a wrong PIN makes their answers useless.
      const pin = await readPin(io, open, token, options.pinFile);
      const username = options.username ?? (await ask(io, 'Username'));
      const secret = await password(io, 'Password', options.passwordFile, { twice: true });
      const signedIn = await open.call('join', { body: { token, pin, username, password: secret } });
      await keep(context, url, signedIn.token, signedIn.user.username, options);
      // The folders of this machine mean nothing to a plane on another one.
      const is_local = options.linkFile === undefined && !options.json;
      if (is_local) {
        const api = await openApi(context, options, url, signedIn.token);
        await offerRepositoryFolder(io, api);
      }
    });
}

/** Reads the PIN from the file, or prompts for it, and prompts again after a wrong one while tries are left. */
async function readPin(io: Io, open: Api, token: string, file: string | undefined): Promise<string> {
  for (;;) {
    const typed = file === undefined ? await ask(io, 'PIN') : await firstLine(io, file);
    const pin = typed.replace(/\s/g, '');
    try {
      await open.call('checkJoinPin', { body: { token, pin } });
      return pin;
    } catch (error) {
      if (!(error instanceof Problem) || error.tries_left === undefined) throw error;
      const { message, tries_left: left } = error;
      const tries = left === 1 ? '1 try left' : `${left} tries left`;
      if (left === 0) {
        const remedy = 'no tries left: create a new PIN with svc join-link';
        throw new Failure(exitCodes.unauthenticated, `${message}; ${remedy}`);
      }
      if (file !== undefined) throw new Failure(exitCodes.unauthenticated, `${message}; ${tries}`);
      printStatus(io, `${message}; ${tries}`);
    }
  }
}

function addJoinLink(program: Command, context: Context): void {
  const { io } = context;
  withLocal(
    addJsonCommand(
      program,
      'join-link',
      'show the link and PIN for creating the root user; run this as the user that runs svc',
    ),
  )
    .option('--url <url>', "URL of this machine's plane; default: its listener's address")
    .action(async (options: Options) => {
      const open = await openApi(context, options, await urlOfThisMachine(context, options), null);
      const { file } = await withExplanation(
        open.call('createJoinChallenge', {}),
        [problems.notAllowed().code],
        async () => [
          'svc creates a new link on request only if it listens on a loopback address; otherwise restart it to get one',
        ],
      );
      const challenge = await readChallenge(file);
      if (options.json) return printJson(io, challenge);
      const { url, pin, expires_at } = challenge;
      await printRecord(io, { open: url, pin, valid_until: expires_at }, options);
    });
}

async function withToken(context: Context, url: string, options: LoginOptions): Promise<void> {
  const { io } = context;
  const token = (await readAll(openStdin(io))).trim();
  if (token === '') throw usage('stdin has no token');
  const me = await (await openApi(context, options, url, token)).call('getMe', {});
  await keep(context, url, token, me.username, options);
}

async function keep(
  context: Context,
  url: string,
  token: string,
  username: string,
  options: Options,
): Promise<void> {
  const { io } = context;
  await storeCredential(io, url, { token, username });
  if (options.json) await printJson(io, { url, username });
  else printStatus(io, printable(`signed in to ${url} as ${username}`));
}

/** Reads the challenge that the service wrote to its data directory; only its user and the machine's root can read it. */
async function readChallenge(file: string): Promise<Record<'url' | 'token' | 'pin' | 'expires_at', string>> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw failed(`cannot read ${file} (${error.code}): run svc join-link as the user of the service`);
  });
  return JSON.parse(text);
}

/**
 * The URL of the plane and the token in the fragment of the join link. The link of this machine's plane contains the origin for
 * browsers, which may be that of a proxy that does not run yet, so the CLI connects to the plane itself.
 */
async function joinLink(context: Context, options: JoinOptions): Promise<{ url: string; token: string }> {
  const { io, local } = context;
  if (options.linkFile === undefined) {
    const data_dir = (await local.loadConfig(localFlags(options))).get('data_dir');
    const text = await readFile(join(data_dir, 'join.json'), 'utf8').catch(() => null);
    if (text === null) {
      throw new Failure(
        exitCodes.failed,
        `no join link in ${data_dir}: start svc, or create a new link with svc join-link`,
      );
    }
    const { token } = JSON.parse(text);
    return { url: await urlOfThisMachine(context, options), token: String(token) };
  }
  const link = await firstLine(io, options.linkFile);
  const token = /#t=([\w-]+)$/.exec(link)?.[1];
  if (token === undefined)
    throw usage('--link-file must contain the complete join link, including the part after #');
  const url = options.url ?? /^(.*)\/join\/?#/.exec(link)?.[1];
  if (url === undefined) throw usage('the link in --link-file must end with /join#t=…');
  return { url: baseUrl(url), token };
}

/**
 * `--url`, else the plane on this machine. Not `SVC_URL` or that of the last sign-in, because they may name another plane, which
 * must not get the token, the PIN and the password for this one.
 */
async function urlOfThisMachine(context: Context, options: Options): Promise<string> {
  return options.url === undefined ? localUrl(context, options) : baseUrl(options.url);
}
