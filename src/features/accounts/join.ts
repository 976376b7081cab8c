/**
 * Creates the first root user, by a challenge (a link with a token, and a PIN) that is valid for ten minutes, five tries and
 * one use. Its clear text is only in `join.json` and in the output of the start, so only somebody who can read the data
 * directory becomes root. The database stores hashes; the hash of the PIN is keyed with the token.
 */
import { createHmac, hash, randomInt, timingSafeEqual } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { KeyedQueue } from '../../base/async.ts';
import type { Clock } from '../../base/clock.ts';
import { rfc3339 } from '../../base/clock.ts';
import { writeFileAtomic } from '../../base/files.ts';
import { newId, newSecret } from '../../base/ids.ts';
import { Problem, problems } from '../../core/problem.ts';
import type { Reader, Store } from '../../store/store.ts';
import { hasRoot } from '../../store/users.ts';
import type { Audit } from '../audit/service.ts';
import { type Client, newToken } from '../tokens/service.ts';
import { limits } from './limits.ts';
import type { Passwords } from './passwords.ts';
import { findChallenge, type JoinRow, replaceChallenge, updateChallenge } from './queries.ts';
import { type Accounts, checkUsername, type SignedIn } from './service.ts';

export interface JoinChallenge {
  /** `{base_url}/join#t=<token>`: the fragment never reaches a server's log. */
  url: string;
  token: string;
  pin: string;
  /** RFC 3339. */
  expires_at: string;
}

/** The location of a challenge, for a caller who may not be allowed to read it. */
export interface JoinFile {
  file: string;
  /** RFC 3339. */
  expires_at: string;
}

export interface JoinPin {
  token: string;
  pin: string;
}

export interface JoinRequest extends JoinPin {
  username: string;
  password: string;
}

export interface JoinDeps {
  store: Store;
  clock: Clock;
  audit: Audit;
  accounts: Accounts;
  passwords: Passwords;
  /** `{data_dir}/join.json`. */
  file: string;
}

const PIN_DIGITS = 8;

export class Join {
  readonly #deps: JoinDeps;
  /** Runs joins one at a time: of concurrent joins one succeeds, and the others see its root. */
  readonly #queue = new KeyedQueue();

  constructor(deps: JoinDeps) {
    this.#deps = deps;
  }

  /**
   * Runs at startup: returns the current challenge if it stays valid for another minute, otherwise a new one. Null, and no
   * file, once there is a root user.
   */
  async ensureChallenge(base_url: string): Promise<JoinChallenge | null> {
    const { store, file } = this.#deps;
    if (await store.read(hasRoot)) {
      await rm(file, { force: true });
      return null;
    }
    return await this.#queue.run('join', () =>
      this.#keepOrCreate(base_url, null, limits.join_challenge_left_ms),
    );
  }

  /** Throws `root already initialized` once there is a root. Called before a request is validated. */
  async refuseOnceDone(): Promise<void> {
    if (await this.#deps.store.read(hasRoot)) throw problems.rootAlreadyInitialized();
  }

  /**
   * Ensures that `join.json` contains a valid challenge, and returns where it is. Only readers of that file get the link and
   * PIN. Keeps a challenge that is still valid: the caller is unauthenticated, and must not be able to invalidate the link that
   * the operator is using. Throws `root already initialized`.
   */
  async requestChallenge(base_url: string, ip: string | null): Promise<JoinFile> {
    const { expires_at } = await this.#queue.run('join', () => this.#keepOrCreate(base_url, ip, 0));
    return { file: this.#deps.file, expires_at };
  }

  /** Returns the current challenge if it stays valid for more than `left_ms`; otherwise replaces it. */
  async #keepOrCreate(base_url: string, ip: string | null, left_ms: number): Promise<JoinChallenge> {
    return (await this.#present(base_url, left_ms)) ?? (await this.#create(base_url, ip));
  }

  async #create(base_url: string, ip: string | null): Promise<JoinChallenge> {
    const { store, clock, audit } = this.#deps;
    const token = newSecret();
    const pin = String(randomInt(10 ** PIN_DIGITS)).padStart(PIN_DIGITS, '0');
    const expires_at = clock.now() + limits.join_challenge_ms;
    const row = {
      token_hash: hash('sha256', token, 'buffer'),
      pin_hash: pinHash(token, pin),
      tries_left: limits.join_pin_tries,
      expires_at,
      used: 0,
    };
    await store.write(async (tx) => {
      if (await hasRoot(tx)) throw problems.rootAlreadyInitialized();
      await replaceChallenge(tx, row);
      await audit.record(tx, { event: 'join_challenge_created', user_id: null, ip });
    });
    const challenge = { url: link(base_url, token), token, pin, expires_at: rfc3339(expires_at) };
    await this.#write(challenge);
    return challenge;
  }

  async #write(challenge: JoinChallenge): Promise<void> {
    await writeFileAtomic(this.#deps.file, `${JSON.stringify(challenge, null, 2)}\n`, 0o600);
  }

  /**
   * Creates the first root and signs it in. Checks in this order: no root yet, token, expiry, PIN, username, password. Only a
   * wrong PIN counts as a try.
   */
  async join(request: JoinRequest, client: Client): Promise<SignedIn> {
    return await this.#inQueue(request.token, () => this.#join(request, client));
  }

  /** Throws what `join` would throw for this token and PIN. A wrong PIN counts as a try; the right one changes nothing. */
  async checkPin(pin: JoinPin, ip: string | null): Promise<void> {
    await this.#inQueue(pin.token, () => this.#requirePin(pin, ip));
  }

  /** A wrong token is refused without waiting for the queue. */
  async #inQueue<T>(token: string, work: () => Promise<T>): Promise<T> {
    await this.#deps.store.read(async (reader) => {
      if (await hasRoot(reader)) throw problems.rootAlreadyInitialized();
      await requireMatchingChallenge(reader, token);
    });
    return await this.#queue.run('join', work);
  }

  /** Throws `invalid pin` with the number of tries left, and counts the try. */
  async #requirePin(request: JoinPin, ip: string | null): Promise<void> {
    const { store, audit } = this.#deps;
    const wrong = await store.write(async (tx) => {
      if (await this.#isRight(tx, request)) return null;
      const tries_left = (await requireMatchingChallenge(tx, request.token)).tries_left - 1;
      await updateChallenge(tx, { tries_left });
      const details = { reason: 'invalid pin', tries_left };
      await audit.record(tx, { event: 'join_failed', user_id: null, ip, level: 'warn', details });
      return { tries_left };
    });
    if (wrong === null) return;
    const { kind, code, message } = problems.invalidPin();
    throw new Problem(kind, code, message, wrong);
  }

  async #join(request: JoinRequest, client: Client): Promise<SignedIn> {
    const { store, accounts, passwords, file } = this.#deps;
    await this.#requirePin(request, client.ip);
    checkUsername(request.username);
    await passwords.check(request.password);
    const password_hash = await passwords.hash(request.password);
    const id = newId('usr');
    const token = newToken();
    const signedIn = await store.write(async (tx): Promise<SignedIn> => {
      if (!(await this.#isRight(tx, request))) throw problems.invalidPin();
      await updateChallenge(tx, { used: 1 });
      const { username } = request;
      await accounts.insert(tx, { id, username, role: 'root', password_hash }, null, client.ip);
      return (await accounts.open(tx, id, token, client, 'password'))!;
    });
    await rm(file, { force: true });
    return signedIn;
  }

  async #isRight(reader: Reader, { token, pin }: JoinPin): Promise<boolean> {
    if (await hasRoot(reader)) throw problems.rootAlreadyInitialized();
    const row = await requireMatchingChallenge(reader, token);
    if (row.used || row.tries_left <= 0 || row.expires_at <= this.#deps.clock.now())
      throw problems.joinTokenExpired();
    return timingSafeEqual(pinHash(token, pin), row.pin_hash);
  }

  /** The challenge in `join.json`, if it matches the database and stays valid for more than `left_ms`. */
  async #present(base_url: string, left_ms: number): Promise<JoinChallenge | null> {
    const { store, clock, file } = this.#deps;
    const stored = readChallenge(await readFile(file, 'utf8').catch(() => ''));
    if (!stored) return null;
    const row = await store.read(findChallenge);
    const good =
      row !== undefined &&
      !row.used &&
      row.tries_left > 0 &&
      row.expires_at > clock.now() + left_ms &&
      timingSafeEqual(hash('sha256', stored.token, 'buffer'), row.token_hash) &&
      timingSafeEqual(pinHash(stored.token, stored.pin), row.pin_hash);
    if (!good) return null;
    const url = link(base_url, stored.token);
    const challenge = { ...stored, url, expires_at: rfc3339(row.expires_at) };
    if (url !== stored.url) await this.#write(challenge);
    return challenge;
  }
}

async function requireMatchingChallenge(reader: Reader, token: string): Promise<JoinRow> {
  const row = await findChallenge(reader);
  if (!row || !timingSafeEqual(hash('sha256', token, 'buffer'), row.token_hash))
    throw problems.invalidJoinToken();
  return row;
}

function pinHash(token: string, pin: string): Buffer {
  return createHmac('sha256', token).update(pin).digest();
}

function link(base_url: string, token: string): string {
  return `${base_url}/join#t=${token}`;
}

function readChallenge(text: string): Pick<JoinChallenge, 'url' | 'token' | 'pin'> | null {
  try {
    const { url, token, pin } = JSON.parse(text) as Record<string, unknown>;
    const isComplete = typeof url === 'string' && typeof token === 'string' && typeof pin === 'string';
    return isComplete ? { url, token, pin } : null;
  } catch {
    return null;
  }
}
