/**
 * Users and sign-ins. Root manages users, for as long as root's token is valid: a request may wait for a password hash, so each
 * transaction checks the token again. Once there is a root user, at least one always remains. A user who still has
 * agents or teams cannot be deleted, because these records would have no owner; root must delete them first.
 */

import { KeyedQueue } from '../../base/async.ts';
import type { Clock } from '../../base/clock.ts';
import { rfc3339 } from '../../base/clock.ts';
import { newId } from '../../base/ids.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { networkPrefix } from '../../base/network.ts';
import { differs } from '../../core/changes.ts';
import { MAIN_NODE } from '../../core/node.ts';
import { type Page, type PageRequest, page, readCursor } from '../../core/page.ts';
import { problems } from '../../core/problem.ts';
import { type Rate, RateLimiter } from '../../server/rate.ts';
import { requireLiveToken } from '../../store/live-tokens.ts';
import type { Store, Tx } from '../../store/store.ts';
import {
  deleteUser,
  findUser,
  findUserByName,
  insertUser,
  listUsers,
  oldestRoots,
  type UserRow,
  updateUser,
} from '../../store/users.ts';
import type { Outbox } from '../../work/outbox.ts';
import { humanActorId } from '../actors/rules/actor.ts';
import { ownsAgents } from '../agents/queries/agents.ts';
import type { Audit } from '../audit/service.ts';
import type { Extensions } from '../feature.ts';
import { nodeIds } from '../nodes/queries.ts';
import { createdTeams } from '../teams/queries.ts';
import { type Client, type Issued, newToken, type Tokens } from '../tokens/service.ts';
import { limits } from './limits.ts';
import type { Passwords } from './passwords.ts';
import { type Caller, type Role, USERNAME, type User } from './rules.ts';
import {
  type Attempt,
  admit,
  fail,
  isFamiliar,
  remember,
  succeed,
  sweepThrottle,
  tooManyAttempts,
} from './throttle.ts';

export interface SignedIn extends Issued {
  user: User;
}

export interface AccountsDeps {
  store: Store;
  clock: Clock;
  audit: Audit;
  tokens: Tokens;
  passwords: Passwords;
  outbox: Pick<Outbox, 'enqueue'>;
  extensions: Pick<Extensions, 'onUserRenamed'>;
  /** How many attempts to sign in an address may make. */
  rate(): Rate;
}

export class Accounts {
  readonly #deps: AccountsDeps;
  readonly #logins = new KeyedQueue();
  readonly #waiting = new Map<string, number>();
  readonly #limiter = new RateLimiter();

  constructor(deps: AccountsDeps) {
    this.#deps = deps;
  }

  /**
   * Signs in with a password. Any error is `invalid username or password`, after the same amount of work; too many attempts or
   * failures are a 429. Attempts from one address run one at a time, so that every failure is counted. A user who is familiar at
   * the address does not wait for others there, and only their own attempts count.
   */
  async login(username: string, password: string, client: Client): Promise<SignedIn> {
    const { store, clock, rate } = this.#deps;
    const { ip } = client;
    const familiar = await store.read(async (reader) => {
      const row = await findUserByName(reader, username);
      return row !== undefined && (await isFamiliar(reader, row.id, ip, clock.now())) ? row.id : null;
    });
    const turn = turnOf(ip, familiar);
    this.#limiter.take(turn, rate());
    return await this.inTurn(turn, () =>
      this.#login({ username, familiar: familiar !== null, ip }, password, client),
    );
  }

  /** Runs attempts to sign in with the same `turn` one at a time; throws a 429 if too many are waiting. */
  async inTurn<T>(turn: string, attempt: () => Promise<T>): Promise<T> {
    const waiting = this.#waiting.get(turn) ?? 0;
    if (waiting >= limits.logins_waiting_per_ip) throw tooManyAttempts(1_000);
    this.#waiting.set(turn, waiting + 1);
    try {
      return await this.#logins.run(turn, attempt);
    } finally {
      const waiting = (this.#waiting.get(turn) ?? 1) - 1;
      if (waiting === 0) this.#waiting.delete(turn);
      else this.#waiting.set(turn, waiting);
    }
  }

  async #login(attempt: Attempt, password: string, client: Client): Promise<SignedIn> {
    const { store, clock, passwords } = this.#deps;
    const row = await store.read(async (reader) => {
      await admit(reader, attempt, clock.now());
      return findUserByName(reader, attempt.username);
    });
    const fits = await passwords.verify(password, row?.password_hash);
    const rehashed =
      row && fits && passwords.outdated(row.password_hash) ? await passwords.hash(password) : null;
    const token = newToken();
    const signedIn = await store.write(async (tx) => {
      // The password may have changed during the check.
      const now = fits && row ? await findUser(tx, row.id) : undefined;
      if (!now || now.password_hash !== row?.password_hash) {
        await this.#failed(tx, attempt, row?.id ?? null);
        return null;
      }
      await succeed(tx, attempt);
      if (rehashed !== null) await updateUser(tx, now.id, { password_hash: rehashed });
      return this.#open(tx, now, token, client, 'password');
    });
    if (!signedIn) throw problems.invalidLogin();
    return signedIn;
  }

  /** Creates a sign-in for a user who has just authenticated. Null if the user no longer exists. */
  async open(
    tx: Tx,
    user_id: string,
    token: string,
    client: Client,
    by: 'password' | 'passkey',
    details: Record<string, unknown> = {},
  ): Promise<SignedIn | null> {
    const row = await findUser(tx, user_id);
    return row ? this.#open(tx, row, token, client, by, details) : null;
  }

  async #open(
    tx: Tx,
    row: UserRow,
    token: string,
    client: Client,
    by: 'password' | 'passkey',
    more: Record<string, unknown> = {},
  ): Promise<SignedIn> {
    const { tokens, audit, clock } = this.#deps;
    const { token_id, ...issued } = await tokens.issue(tx, row.id, token, client, by);
    await remember(tx, row.id, client.ip, clock.now());
    const details = { token_id, ...more };
    await audit.record(tx, { event: 'user_login', user_id: row.id, ip: client.ip, details });
    return { ...issued, user: toUser(row) };
  }

  async #failed(tx: Tx, attempt: Attempt, user_id: string | null): Promise<void> {
    const { audit, clock } = this.#deps;
    const details = USERNAME.test(attempt.username) ? { username: attempt.username } : {};
    const entry = { user_id, ip: attempt.ip, level: 'warn' as const, details };
    await audit.record(tx, { ...entry, event: 'user_login_failed' });
    if (await fail(tx, attempt, clock.now()))
      await audit.record(tx, { ...entry, event: 'user_login_throttled' });
  }

  /** The caller's own record. */
  async me(caller: Caller): Promise<User> {
    return await this.get(caller.user_id);
  }

  /** Changes the caller's password and revokes their other tokens. A wrong current password counts as a failed sign-in. */
  async changePassword(caller: Caller, current: string, input: string): Promise<User> {
    const { clock, passwords, tokens, audit } = this.#deps;
    const change = async () => {
      await passwords.check(input);
      const password_hash = await passwords.hash(input);
      return async (tx: Tx, row: UserRow) => {
        await updateUser(tx, row.id, { password_hash, updated_at: clock.now() });
        const tokens_ended = await tokens.endAll(tx, row.id, caller.token_id);
        const details = { subject_id: row.id, tokens_ended };
        await audit.record(tx, { event: 'password_changed', user_id: row.id, ip: caller.ip, details });
      };
    };
    return toUser(await this.#withPassword(caller, current, change));
  }

  /** Verifies the password of the caller's sign-in again. A wrong one counts as a failed sign-in. */
  async verifyCurrentPassword(caller: Caller, password: string): Promise<void> {
    await this.#withPassword(caller, password, async () => async () => {});
  }

  /** Verifies the caller's password, and runs the action that `prepare` returns in the same transaction. */
  async #withPassword(
    caller: Caller,
    password: string,
    prepare: () => Promise<(tx: Tx, row: UserRow) => Promise<void>>,
  ): Promise<UserRow> {
    const { store, clock, passwords, tokens } = this.#deps;
    const attempt: Attempt = { username: caller.username, familiar: true, ip: caller.ip };
    return await this.#logins.run(turnOf(caller.ip, caller.user_id), async () => {
      const row = await store.read(async (reader) => {
        await admit(reader, attempt, clock.now());
        return findUser(reader, caller.user_id);
      });
      if (!row) throw problems.invalidToken();
      if (!(await passwords.verify(password, row.password_hash))) {
        await store.write((tx) => this.#failed(tx, attempt, row.id));
        throw problems.invalidLogin();
      }
      const act = await prepare();
      await store.write(async (tx) => {
        // The password may have changed during the check.
        if ((await findUser(tx, row.id))?.password_hash !== row.password_hash) throw problems.invalidLogin();
        await succeed(tx, attempt);
        await tokens.recordPasswordVerified(tx, caller.token_id);
        await act(tx, row);
      });
      return row;
    });
  }

  /** All users, newest first. */
  list(request: PageRequest): Promise<Page<User>> {
    const after = readCursor(request.cursor, 'number', 'string');
    const limit =
      request.limit ?? (request.cursor === undefined ? undefined : sharedLimits.page_items_default);
    return this.#deps.store.read(async (reader) => {
      const rows = await listUsers(reader, { after, limit: limit === undefined ? undefined : limit + 1 });
      return page(rows, limit ?? rows.length, toUser, (row) => [row.created_at, row.id]);
    });
  }

  async get(user_id: string): Promise<User> {
    const row = await this.#deps.store.read((reader) => findUser(reader, user_id));
    if (!row) throw problems.userNotFound();
    return toUser(row);
  }

  /**
   * Creates a user. `id` derives from an idempotency key. If the user was created within the lifetime of the key, this call
   * is a repetition, and the first response was lost.
   */
  async create(
    caller: Caller,
    input: { id?: string | undefined; username: string; password: string; role: Role },
  ): Promise<User> {
    const { store, clock, passwords } = this.#deps;
    checkUsername(input.username);
    await passwords.check(input.password);
    const password_hash = await passwords.hash(input.password);
    const spare = newId('usr');
    return await store.write(async (tx) => {
      await requireLiveToken(tx, caller);
      const before = input.id === undefined ? undefined : await findUser(tx, input.id);
      if (before && before.created_at > clock.now() - sharedLimits.idempotency_keep_ms) {
        if (before.username !== input.username) throw problems.idempotencyReused();
        return toUser(before);
      }
      const id = before ? spare : (input.id ?? spare);
      return this.insert(tx, { id, username: input.username, role: input.role, password_hash }, caller);
    });
  }

  /** Stores a new user, already validated and with a hashed password. `by` is null for the first root. */
  async insert(
    tx: Tx,
    user: { id: string; username: string; role: Role; password_hash: string },
    by: Caller | null,
    ip: string | null = by?.ip ?? null,
  ): Promise<User> {
    const { clock, audit } = this.#deps;
    if (await findUserByName(tx, user.username)) throw problems.usernameTaken();
    const now = clock.now();
    await insertUser(tx, { ...user, created_at: now, updated_at: now });
    const details = { subject_id: user.id, username: user.username, role: user.role, joined: by === null };
    await audit.record(tx, { event: 'user_created', user_id: by?.user_id ?? user.id, ip, details });
    return toUser({ ...user, created_at: now });
  }

  /**
   * Changes a user. A new password or role revokes all the user's tokens. The token of this call stays valid if root changes
   * their own password but not their role. Unchanged names and roles have no effect and are not audited.
   */
  async update(
    caller: Caller,
    user_id: string,
    change: { username?: string | undefined; password?: string | undefined; role?: Role | undefined },
  ): Promise<User> {
    const { store, clock, passwords, tokens, audit, extensions } = this.#deps;
    if (change.username !== undefined) checkUsername(change.username);
    if (change.password !== undefined) await passwords.check(change.password);
    await this.get(user_id);
    const password_hash = change.password === undefined ? undefined : await passwords.hash(change.password);
    return await store.write(async (tx) => {
      await requireLiveToken(tx, caller);
      const row = await findUser(tx, user_id);
      if (!row) throw problems.userNotFound();
      const role = change.role ?? row.role;
      const username = change.username ?? row.username;
      if (role !== row.role && row.role === 'root') await refuseLastRoot(tx);
      if (username !== row.username && (await findUserByName(tx, username))) throw problems.usernameTaken();
      const values = { username, role, password_hash: password_hash ?? row.password_hash };
      if (!differs(row, values)) return toUser(row);
      await updateUser(tx, user_id, { ...values, updated_at: clock.now() });
      const changed = {
        ...(username !== row.username && { username: { from: row.username, to: username } }),
        ...(role !== row.role && { role: { from: row.role, to: role } }),
        ...(password_hash !== undefined && { password: true }),
      };
      const keep = role === row.role && caller.user_id === user_id ? caller.token_id : null;
      const tokens_ended =
        password_hash !== undefined || role !== row.role ? await tokens.endAll(tx, user_id, keep) : 0;
      if (username !== row.username) {
        await tokens.renamed(tx, user_id);
        await extensions.onUserRenamed(tx, humanActorId(row.username), humanActorId(username));
      }
      const details = { subject_id: user_id, changed, tokens_ended };
      await audit.record(tx, { event: 'user_updated', user_id: caller.user_id, ip: caller.ip, details });
      return toUser({ ...row, username, role });
    });
  }

  /** Deletes a user without agents and teams. Nodes delete their data of the user once they are reachable. */
  async delete(caller: Caller, user_id: string): Promise<void> {
    const { store, tokens, audit, outbox } = this.#deps;
    await store.write(async (tx) => {
      await requireLiveToken(tx, caller);
      const row = await findUser(tx, user_id);
      if (!row) throw problems.userNotFound();
      if (row.role === 'root') await refuseLastRoot(tx);
      if (await ownsAgents(tx, user_id)) throw problems.userHasAgents();
      if (await createdTeams(tx, user_id)) throw problems.userHasTeams();
      const tokens_ended = await tokens.endAll(tx, user_id);
      await deleteUser(tx, user_id);
      for (const node_id of [MAIN_NODE, ...(await nodeIds(tx))]) {
        await outbox.enqueue(tx, node_id, `${user_id} ${node_id}`, 'forget_owner', { owner_id: user_id });
      }
      const details = { subject_id: user_id, username: row.username, role: row.role, tokens_ended };
      await audit.record(tx, { event: 'user_deleted', user_id: caller.user_id, ip: caller.ip, details });
    });
  }

  /** Deletes expired counts of failed sign-ins. */
  sweep(): Promise<number> {
    return this.#deps.store.write((tx) => sweepThrottle(tx, this.#deps.clock.now()));
  }
}

/** The attempts that run one at a time: those of a familiar user at an address, or of all others there. */
function turnOf(ip: string | null, familiar: string | null): string {
  const network = networkPrefix(ip);
  return familiar === null ? network : `${network} ${familiar}`;
}

/** Throws a 400 if the username has invalid characters or length. */
export function checkUsername(username: string): void {
  if (!USERNAME.test(username)) throw problems.usernameInvalid();
}

async function refuseLastRoot(tx: Tx): Promise<void> {
  if ((await oldestRoots(tx, 2)).length < 2) throw problems.lastRoot();
}

function toUser(row: Pick<UserRow, 'id' | 'username' | 'role' | 'created_at'>): User {
  return { id: row.id, username: row.username, role: row.role, created_at: rfc3339(row.created_at) };
}
