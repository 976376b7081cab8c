/**
 * Users and how they sign in. Root manages users; there is always at least one root once there was one. A user that
 * still has agents or teams is not deleted: their records would belong to nobody, so root deletes those first.
 */

import { KeyedQueue } from '../base/async.ts';
import type { Clock } from '../base/clock.ts';
import { rfc3339 } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import { limits } from '../base/limits.ts';
import { problems } from '../domain/problem.ts';
import { type Caller, type Role, USERNAME, type User } from '../domain/user.ts';
import type { Reader, Store, Tx } from '../store/store.ts';
import type { Audit } from './audit.ts';
import { differs } from './changes.ts';
import { type Page, type PageRequest, page, readCursor } from './page.ts';
import type { Passwords } from './passwords.ts';
import { type Attempt, admit, fail, networkOf, succeed, sweepThrottle, tooManyAttempts } from './throttle.ts';
import { type Client, type Issued, newToken, type Tokens } from './tokens.ts';

export interface SignedIn extends Issued {
  user: User;
}

export interface AccountsDeps {
  store: Store;
  clock: Clock;
  audit: Audit;
  tokens: Tokens;
  passwords: Passwords;
}

interface UserRow {
  id: string;
  username: string;
  role: Role;
  password_hash: string;
  created_at: number;
}

export class Accounts {
  readonly #deps: AccountsDeps;
  readonly #logins = new KeyedQueue();
  readonly #waiting = new Map<string, number>();

  constructor(deps: AccountsDeps) {
    this.#deps = deps;
  }

  /**
   * A new sign-in. Whatever is wrong is `invalid username or password`, after the same work; too many failures are a
   * 429. Attempts of one address are looked at one after the other, so that none slips past the count.
   */
  login(username: string, password: string, client: Client): Promise<SignedIn> {
    return this.inTurn(client.ip, () => this.#login(username, password, client));
  }

  /** One attempt to sign in after the other of an address, so many waiting; more of them are a 429. */
  async inTurn<T>(ip: string | null, attempt: () => Promise<T>): Promise<T> {
    const network = networkOf(ip);
    const waiting = this.#waiting.get(network) ?? 0;
    if (waiting >= limits.logins_waiting_per_ip) throw tooManyAttempts(1_000);
    this.#waiting.set(network, waiting + 1);
    try {
      return await this.#logins.run(network, attempt);
    } finally {
      const left = (this.#waiting.get(network) ?? 1) - 1;
      if (left === 0) this.#waiting.delete(network);
      else this.#waiting.set(network, left);
    }
  }

  async #login(username: string, password: string, client: Client): Promise<SignedIn> {
    const { store, clock, passwords } = this.#deps;
    const { row, attempt } = await store.read((reader) => {
      const row = findUser(reader, 'username', username);
      const familiar = row !== undefined && isFamiliar(reader, row.id, client.ip);
      const attempt: Attempt = { username, familiar, ip: client.ip };
      admit(reader, attempt, clock.now());
      return { row, attempt };
    });
    const fits = await passwords.verify(password, row?.password_hash);
    const rehashed =
      row && fits && passwords.outdated(row.password_hash) ? await passwords.hash(password) : null;
    const token = newToken();
    const signedIn = await store.write((tx) => {
      // The password may have changed while it was being checked.
      const now = fits && row ? findUser(tx, 'id', row.id) : undefined;
      if (!now || now.password_hash !== row?.password_hash) {
        this.#failed(tx, attempt, row?.id ?? null);
        return null;
      }
      succeed(tx, attempt);
      if (rehashed !== null)
        tx.run(tx.sql.updateTable('users').set({ password_hash: rehashed }).where('id', '=', now.id));
      return this.#open(tx, now, token, client, 'password');
    });
    if (!signedIn) throw problems.invalidLogin();
    return signedIn;
  }

  /** The sign-in of somebody who has just shown who they are; null when there is no such user any more. */
  open(
    tx: Tx,
    user_id: string,
    token: string,
    client: Client,
    by: 'password' | 'passkey',
    details: Record<string, unknown> = {},
  ): SignedIn | null {
    const row = findUser(tx, 'id', user_id);
    return row ? this.#open(tx, row, token, client, by, details) : null;
  }

  #open(
    tx: Tx,
    row: UserRow,
    token: string,
    client: Client,
    by: 'password' | 'passkey',
    more: Record<string, unknown> = {},
  ): SignedIn {
    const { tokens, audit } = this.#deps;
    const { token_id, ...issued } = tokens.issue(tx, row.id, token, client, by);
    const details = { token_id, ...more };
    audit.record(tx, { event: 'user_login', user_id: row.id, ip: client.ip, details });
    return { ...issued, user: toUser(row) };
  }

  #failed(tx: Tx, attempt: Attempt, user_id: string | null): void {
    const { audit, clock } = this.#deps;
    const details = USERNAME.test(attempt.username) ? { username: attempt.username } : {};
    const entry = { user_id, ip: attempt.ip, level: 'warn' as const, details };
    audit.record(tx, { ...entry, event: 'user_login_failed' });
    if (fail(tx, attempt, clock.now())) audit.record(tx, { ...entry, event: 'user_login_throttled' });
  }

  /** The caller's own record. */
  async me(caller: Caller): Promise<User> {
    return await this.get(caller.user_id);
  }

  /** Ends every other token of the caller. A wrong current password counts as a failed sign-in. */
  async changePassword(caller: Caller, current: string, wanted: string): Promise<User> {
    const { clock, passwords, tokens, audit } = this.#deps;
    const change = async () => {
      await passwords.check(wanted);
      const password_hash = await passwords.hash(wanted);
      return (tx: Tx, row: UserRow) => {
        const set = { password_hash, updated_at: clock.now() };
        tx.run(tx.sql.updateTable('users').set(set).where('id', '=', row.id));
        const tokens_ended = tokens.endAll(tx, row.id, caller.token_id);
        const details = { subject_id: row.id, tokens_ended };
        audit.record(tx, { event: 'password_changed', user_id: row.id, ip: caller.ip, details });
      };
    };
    return toUser(await this.#withPassword(caller, current, change));
  }

  /** The caller's sign-in shows the password once more. A wrong one counts as a failed sign-in. */
  async showPassword(caller: Caller, password: string): Promise<void> {
    await this.#withPassword(caller, password, async () => () => {});
  }

  /** What `prepare` answers is done in the transaction that takes the password for the caller's own. */
  async #withPassword(
    caller: Caller,
    password: string,
    prepare: () => Promise<(tx: Tx, row: UserRow) => void>,
  ): Promise<UserRow> {
    const { store, clock, passwords, tokens } = this.#deps;
    const attempt: Attempt = { username: caller.username, familiar: true, ip: caller.ip };
    return await this.#logins.run(networkOf(caller.ip), async () => {
      const row = await store.read((reader) => {
        admit(reader, attempt, clock.now());
        return findUser(reader, 'id', caller.user_id);
      });
      if (!row) throw problems.invalidToken();
      if (!(await passwords.verify(password, row.password_hash))) {
        await store.write((tx) => this.#failed(tx, attempt, row.id));
        throw problems.invalidLogin();
      }
      const act = await prepare();
      await store.write((tx) => {
        // The password may have changed while it was being checked.
        if (findUser(tx, 'id', row.id)?.password_hash !== row.password_hash) throw problems.invalidLogin();
        succeed(tx, attempt);
        tokens.showedPassword(tx, caller.token_id);
        act(tx, row);
      });
      return row;
    });
  }

  /** All users, newest first. */
  list(request: PageRequest): Promise<Page<User>> {
    const after = readCursor(request.cursor, 'number', 'string');
    const limit = request.limit ?? (request.cursor === undefined ? undefined : limits.page_items_default);
    return this.#deps.store.read((reader) => {
      let query = reader.sql
        .selectFrom('users')
        .select(['id', 'username', 'role', 'created_at'])
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc');
      if (after)
        query = query.where(({ eb, refTuple, tuple }) =>
          eb(refTuple('created_at', 'id'), '<', tuple(...after)),
        );
      const rows = reader.all(limit === undefined ? query : query.limit(limit + 1));
      return page(rows, limit ?? rows.length, toUser, (row) => [row.created_at, row.id]);
    });
  }

  async get(user_id: string): Promise<User> {
    const row = await this.#deps.store.read((reader) => findUser(reader, 'id', user_id));
    if (!row) throw problems.userNotFound();
    return toUser(row);
  }

  /**
   * `id` is the one that an idempotency key stands for: when it is of the key's day, this very call was made before,
   * and its answer was lost.
   */
  async create(
    caller: Caller,
    wanted: { id?: string | undefined; username: string; password: string; role: Role },
  ): Promise<User> {
    const { store, clock, passwords } = this.#deps;
    checkUsername(wanted.username);
    await passwords.check(wanted.password);
    const password_hash = await passwords.hash(wanted.password);
    const spare = newId('usr');
    return await store.write((tx) => {
      const before = wanted.id === undefined ? undefined : findUser(tx, 'id', wanted.id);
      if (before && before.created_at > clock.now() - limits.idempotency_keep_ms) {
        if (before.username !== wanted.username) throw problems.idempotencyReused();
        return toUser(before);
      }
      const id = before ? spare : (wanted.id ?? spare);
      return this.insert(tx, { id, username: wanted.username, role: wanted.role, password_hash }, caller);
    });
  }

  /** Writes a new user, checked and hashed before; `by` is null for the first root, who made themselves. */
  insert(
    tx: Tx,
    user: { id: string; username: string; role: Role; password_hash: string },
    by: Caller | null,
    ip: string | null = by?.ip ?? null,
  ): User {
    const { clock, audit } = this.#deps;
    if (findUser(tx, 'username', user.username)) throw problems.usernameTaken();
    const now = clock.now();
    tx.run(tx.sql.insertInto('users').values({ ...user, created_at: now, updated_at: now }));
    const details = { subject_id: user.id, username: user.username, role: user.role, joined: by === null };
    audit.record(tx, { event: 'user_created', user_id: by?.user_id ?? user.id, ip, details });
    return toUser({ ...user, created_at: now });
  }

  /**
   * A new password or another role ends all tokens of the user; root's own token of this very call stays when the
   * password alone changes. A name and a role that the user already has change nothing and are not audited.
   */
  async update(
    caller: Caller,
    user_id: string,
    change: { username?: string | undefined; password?: string | undefined; role?: Role | undefined },
  ): Promise<User> {
    const { store, clock, passwords, tokens, audit } = this.#deps;
    if (change.username !== undefined) checkUsername(change.username);
    if (change.password !== undefined) await passwords.check(change.password);
    await this.get(user_id);
    const password_hash = change.password === undefined ? undefined : await passwords.hash(change.password);
    return await store.write((tx) => {
      const row = findUser(tx, 'id', user_id);
      if (!row) throw problems.userNotFound();
      const role = change.role ?? row.role;
      const username = change.username ?? row.username;
      if (role !== row.role && row.role === 'root') refuseLastRoot(tx);
      if (username !== row.username && findUser(tx, 'username', username)) throw problems.usernameTaken();
      const values = { username, role, password_hash: password_hash ?? row.password_hash };
      if (!differs(row, values)) return toUser(row);
      const set = { ...values, updated_at: clock.now() };
      tx.run(tx.sql.updateTable('users').set(set).where('id', '=', user_id));
      const changed = {
        ...(username !== row.username && { username: { from: row.username, to: username } }),
        ...(role !== row.role && { role: { from: row.role, to: role } }),
        ...(password_hash !== undefined && { password: true }),
      };
      const keep = role === row.role && caller.user_id === user_id ? caller.token_id : null;
      const tokens_ended =
        password_hash !== undefined || role !== row.role ? tokens.endAll(tx, user_id, keep) : 0;
      if (username !== row.username) tokens.renamed(tx, user_id);
      const details = { subject_id: user_id, changed, tokens_ended };
      audit.record(tx, { event: 'user_updated', user_id: caller.user_id, ip: caller.ip, details });
      return toUser({ ...row, username, role });
    });
  }

  async delete(caller: Caller, user_id: string): Promise<void> {
    const { store, tokens, audit } = this.#deps;
    await store.write((tx) => {
      const row = findUser(tx, 'id', user_id);
      if (!row) throw problems.userNotFound();
      if (row.role === 'root') refuseLastRoot(tx);
      const agents = tx.sql.selectFrom('agents').select('id').where('owner_id', '=', user_id).limit(1);
      if (tx.get(agents)) throw problems.userHasAgents();
      const teams = tx.sql.selectFrom('teams').select('id').where('created_by', '=', user_id).limit(1);
      if (tx.get(teams)) throw problems.userHasTeams();
      const tokens_ended = tokens.endAll(tx, user_id);
      tx.run(tx.sql.deleteFrom('users').where('id', '=', user_id));
      const details = { subject_id: user_id, username: row.username, role: row.role, tokens_ended };
      audit.record(tx, { event: 'user_deleted', user_id: caller.user_id, ip: caller.ip, details });
    });
  }

  /** Deletes counts of failed sign-ins that no longer matter. */
  sweep(): Promise<number> {
    return this.#deps.store.write((tx) => sweepThrottle(tx, this.#deps.clock.now()));
  }
}

export function checkUsername(username: string): void {
  if (!USERNAME.test(username)) throw problems.usernameInvalid();
}

/** Whether there is a root user: joining is over. */
export function hasRoot(reader: Reader): boolean {
  return (
    reader.get(reader.sql.selectFrom('users').select('id').where('role', '=', 'root').limit(1)) !== undefined
  );
}

function refuseLastRoot(tx: Tx): void {
  const roots = tx.all(tx.sql.selectFrom('users').select('id').where('role', '=', 'root').limit(2));
  if (roots.length < 2) throw problems.lastRoot();
}

function isFamiliar(reader: Reader, user_id: string, ip: string | null): boolean {
  if (ip === null) return false;
  const query = reader.sql.selectFrom('tokens').select('id').where('user_id', '=', user_id);
  return reader.get(query.where('kind', '=', 'session').where('ip', '=', ip).limit(1)) !== undefined;
}

function findUser(reader: Reader, column: 'id' | 'username', value: string): UserRow | undefined {
  return reader.get(
    reader.sql
      .selectFrom('users')
      .select(['id', 'username', 'role', 'password_hash', 'created_at'])
      .where(column, '=', value),
  );
}

function toUser(row: Omit<UserRow, 'password_hash'>): User {
  return { id: row.id, username: row.username, role: row.role, created_at: rfc3339(row.created_at) };
}
