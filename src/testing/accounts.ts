/** The account services for tests, with a real database in a temporary folder, and a clock that only a test advances. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Logger } from '../base/log.ts';
import { silentLog } from '../base/log.ts';
import { Join } from '../features/accounts/join.ts';
import { type PasswordRules, Passwords } from '../features/accounts/passwords.ts';
import type { Caller } from '../features/accounts/rules.ts';
import { Accounts } from '../features/accounts/service.ts';
import { Audit } from '../features/audit/service.ts';
import { deleteSubscriptionsOfToken, deleteSubscriptionsOfUser } from '../features/notifications/queries.ts';
import { Tokens } from '../features/tokens/service.ts';
import { IdempotencyKeys } from '../server/idempotency.ts';
import type { Rate } from '../server/rate.ts';
import type { Store } from '../store/store.ts';
import { Outbox } from '../work/outbox.ts';
import { openTestStore } from './test-store.ts';

export const PASSWORD = 'correct horse battery';
export const BASE_URL = 'http://127.0.0.1:8080';

export class TestClock {
  #now = 1_800_000_000_000;
  now(): number {
    return this.#now;
  }
  advance(ms: number): void {
    this.#now += ms;
  }
}

/** Instant hashes, for tests that are not about hashes. */
class CheapPasswords extends Passwords {
  override hash(password: string): Promise<string> {
    return Promise.resolve(`cheap ${password}`);
  }
  override verify(password: string, phc: string | undefined): Promise<boolean> {
    return Promise.resolve(phc === `cheap ${password}`);
  }
  override outdated(): boolean {
    return false;
  }
}

interface FixtureOptions {
  log?: Logger;
  /** Uses argon2id like the service; each hash takes about 30 ms. */
  real_hashes?: boolean;
}

export class AccountsFixture {
  readonly folder: string;
  readonly store: Store;
  readonly clock = new TestClock();
  readonly rules: PasswordRules = { min_length: 12, require_special_chars: false };
  /** For sign-ins; no test reaches it unless it sets a lower one. */
  rate: Rate = { per_second: 10_000, burst: 10_000 };
  readonly log: Logger;
  readonly #real: boolean;
  audit!: Audit;
  tokens!: Tokens;
  passwords!: Passwords;
  accounts!: Accounts;
  join!: Join;
  idempotency!: IdempotencyKeys;

  constructor(folder: string, store: Store, options: FixtureOptions) {
    this.folder = folder;
    this.store = store;
    this.log = options.log ?? silentLog;
    this.#real = options.real_hashes ?? false;
    this.restart();
  }

  static async open(options: FixtureOptions = {}): Promise<AccountsFixture> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-accounts-'));
    return new AccountsFixture(folder, await openTestStore(folder), options);
  }

  /** Creates new services on the same database, as after a restart. */
  restart(): void {
    const { store, clock, log } = this;
    this.audit = new Audit({ store, clock, log });
    const extensions = {
      onUserRenamed: async () => {},
      onTokenRevoked: deleteSubscriptionsOfToken,
      onTokensRevoked: deleteSubscriptionsOfUser,
    };
    this.tokens = new Tokens({ store, clock, log, audit: this.audit, extensions });
    this.passwords = new (this.#real ? Passwords : CheapPasswords)(() => this.rules);
    const common = {
      store,
      clock,
      extensions,
      audit: this.audit,
      tokens: this.tokens,
      passwords: this.passwords,
    };
    const outbox = new Outbox({ store, clock, log });
    this.accounts = new Accounts({ ...common, outbox, rate: () => this.rate });
    this.join = new Join({ ...common, accounts: this.accounts, file: this.joinFile });
    this.idempotency = new IdempotencyKeys({ store, clock, key: new Uint8Array(32).fill(7) });
  }

  get joinFile(): string {
    return join(this.folder, 'join.json');
  }

  /** Creates the first root user; returns its caller and token. */
  async joinRoot(ip = '127.0.0.1'): Promise<{ caller: Caller; token: string }> {
    const { token, pin } = (await this.join.ensureChallenge(BASE_URL))!;
    const signedIn = await this.join.join(
      { token, pin, username: 'root', password: PASSWORD },
      { ip, user_agent: 'test' },
    );
    return { token: signedIn.token, caller: await this.tokens.authenticate(signedIn.token, ip) };
  }

  async login(
    username: string,
    password = PASSWORD,
    ip = '127.0.0.1',
  ): Promise<{ caller: Caller; token: string }> {
    const { token } = await this.accounts.login(username, password, { ip, user_agent: 'test' });
    return { token, caller: await this.tokens.authenticate(token, ip) };
  }

  /** Names of all audit records, oldest first. */
  async audited(): Promise<string[]> {
    return await this.store.read(async (reader) =>
      (await reader.all(reader.sql.selectFrom('audit').select('event').orderBy('id'))).map(
        (row) => row.event,
      ),
    );
  }

  async close(): Promise<void> {
    await this.store.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** The message of the error with which `promise` rejects, or `ok` if it does not. */
export async function outcome(promise: Promise<unknown>): Promise<string> {
  return await promise.then(
    () => 'ok',
    (error: Error) => error.message,
  );
}
