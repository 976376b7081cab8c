/**
 * Passkeys: added by a sign-in that has shown the password lately, and then as good as it. A challenge is used once,
 * whatever comes of it: of a registration it is bound to the sign-in that began it, of a login to an id that is handed out
 * and given back. Signatures and formats are checked by a library, which is loaded when somebody first needs it; what is
 * expected of them stands here. A refused login never says why; the audit trail does.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { rfc3339, rfc3339OrNull } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import { limits } from '../base/limits.ts';
import { invalid, problems } from '../domain/problem.ts';
import type { Caller } from '../domain/user.ts';
import {
  deletePasskey,
  findPasskey,
  insertPasskey,
  openLogin,
  openRegistration,
  type PasskeyRow,
  passkeyOfCredential,
  passkeysOf,
  sweepChallenges,
  takeLogin,
  takeRegistration,
  updatePasskey,
} from '../store/passkeys.ts';
import type { Reader, Store, Tx } from '../store/store.ts';
import type { Accounts, SignedIn } from './accounts.ts';
import type { Audit, AuditEntry } from './audit.ts';
import type { Place, RelyingParty } from './relying-party.ts';
import { admitAddress, failAddress, networkOf } from './throttle.ts';
import { type Client, newToken, type Tokens } from './tokens.ts';

export interface Passkey {
  id: string;
  name: string;
  created_at: string;
  last_used_at: string | null;
}

/** What a browser answers, in its JSON form; bytes are base64url. */
interface Credential {
  id: string;
  rawId: string;
  type: string;
}

export interface RegistrationResponse extends Credential {
  response: { clientDataJSON: string; attestationObject: string; transports: string[] };
}

export interface LoginResponse extends Credential {
  response: {
    clientDataJSON: string;
    authenticatorData: string;
    signature: string;
    userHandle: string | null;
  };
}

export interface PasskeysDeps {
  store: Store;
  clock: Clock;
  audit: Audit;
  accounts: Accounts;
  tokens: Tokens;
  place(): Place;
}

/** EdDSA, ES256, RS256: what the authenticators of today have. The first that one knows is taken. */
const ALGORITHMS = [-8, -7, -257];
const CHALLENGE_BYTES = 32;
const REASON_CHARS_MAX = 200;

export class Passkeys {
  readonly #deps: PasskeysDeps;
  readonly #stranger = strangersKey();

  constructor(deps: PasskeysDeps) {
    this.#deps = deps;
  }

  place(): Place {
    return this.#deps.place();
  }

  /** The user's own, oldest first. */
  async list(user_id: string): Promise<Passkey[]> {
    return (await this.#deps.store.read((reader) => passkeysOf(reader, user_id))).map(toPasskey);
  }

  /** What the browser is asked for. `origin`: of the page that asks, where a browser says it. */
  async startRegistration(
    caller: Caller,
    { current_password, origin }: { current_password?: string | undefined; origin?: string | undefined },
  ) {
    const { clock } = this.#deps;
    const party = this.#partyFor(origin);
    const challenge = randomBytes(CHALLENGE_BYTES);
    const own = await this.#withPassword(caller, current_password, (tx) => {
      const own = passkeysOf(tx, caller.user_id);
      if (own.length >= limits.passkeys_per_user) throw problems.tooManyPasskeys();
      const expires_at = clock.now() + limits.passkey_challenge_ms;
      openRegistration(tx, { token_id: caller.token_id, challenge, expires_at });
      return own;
    });
    const type = 'public-key' as const;
    return {
      challenge: encode(challenge),
      rp: { id: party.id, name: party.name },
      user: { id: handleOf(caller.user_id), name: caller.username, displayName: caller.username },
      pubKeyCredParams: ALGORITHMS.map((alg) => ({ type, alg })),
      timeout: limits.passkey_challenge_ms,
      excludeCredentials: own.map(({ credential_id, transports }) => ({
        id: encode(credential_id),
        type,
        transports: JSON.parse(transports) as string[],
      })),
      authenticatorSelection: {
        residentKey: 'required' as const,
        requireResidentKey: true as const,
        userVerification: 'required' as const,
      },
      attestation: 'none' as const,
    };
  }

  /**
   * Keeps the passkey. `id` is the one that an idempotency key stands for: when it is this very credential's, the first
   * answer was lost.
   */
  async finishRegistration(
    caller: Caller,
    given: { id?: string | undefined; name: string; response: RegistrationResponse },
  ): Promise<Passkey> {
    const { store, clock, tokens } = this.#deps;
    const { name, response } = given;
    const begun = await store.write((tx) => {
      const before = given.id === undefined ? undefined : findPasskey(tx, given.id);
      if (before?.user_id === caller.user_id && encode(before.credential_id) === response.id)
        return { before };
      // It had, when it began; this refuses API tokens.
      tokens.hasShownPassword(tx, caller);
      return { open: takeRegistration(tx, caller.token_id) };
    });
    if (begun.before) return toPasskey(begun.before);
    if (!begun.open || begun.open.expires_at <= clock.now()) throw problems.passkeyRegistrationOver();
    const credential = await this.#registered(response, begun.open.challenge);
    const spare = newId('pky');
    return await store.write((tx) => {
      // The sign-in may have been ended meanwhile, by somebody who changed the password for a reason.
      tokens.hasShownPassword(tx, caller);
      if (passkeyOfCredential(tx, credential.credential_id)) throw problems.passkeyNotValid();
      if (passkeysOf(tx, caller.user_id).length >= limits.passkeys_per_user) throw problems.tooManyPasskeys();
      const id = given.id === undefined || findPasskey(tx, given.id) ? spare : given.id;
      const row: PasskeyRow = {
        id,
        user_id: caller.user_id,
        ...credential,
        name,
        created_at: clock.now(),
        last_used_at: null,
      };
      insertPasskey(tx, row);
      this.#record(tx, caller, { event: 'passkey_registered', details: { passkey_id: id, name } });
      return toPasskey(row);
    });
  }

  /** What the browser is asked for, of whichever passkey the person chooses. */
  async startLogin(client: Client, origin: string | undefined) {
    const { store, clock } = this.#deps;
    const party = this.#partyFor(origin);
    const challenge = randomBytes(CHALLENGE_BYTES);
    const id = newId('pkl');
    const expires_at = clock.now() + limits.passkey_challenge_ms;
    await store.write((tx) =>
      openLogin(
        tx,
        { id, challenge, network: networkOf(client.ip), expires_at },
        { per_network: limits.passkey_logins_per_network, in_all: limits.passkey_logins_max },
      ),
    );
    const options = {
      challenge: encode(challenge),
      rpId: party.id,
      timeout: limits.passkey_challenge_ms,
      userVerification: 'required' as const,
    };
    return { login_id: id, options };
  }

  /**
   * A new sign-in. Whatever is wrong is `passkey was not accepted`, after the same work where the passkey alone is
   * unknown; too many failures of an address are a 429.
   */
  finishLogin(login_id: string, response: LoginResponse, client: Client): Promise<SignedIn> {
    return this.#deps.accounts.inTurn(client.ip, () => this.#finishLogin(login_id, response, client));
  }

  async #finishLogin(login_id: string, response: LoginResponse, client: Client): Promise<SignedIn> {
    const { store, clock, accounts, audit } = this.#deps;
    const { open, known } = await store.write((tx) => {
      admitAddress(tx, client.ip, clock.now());
      return { open: takeLogin(tx, login_id), known: passkeyOfCredential(tx, decode(response.id)) };
    });
    const shown = await this.#shown(response, open, known).catch((error: Error) => error);
    const token = newToken();
    const signedIn = await store.write((tx) => {
      const refuse = (reason: string) => {
        this.#failed(tx, client, known, reason);
        return null;
      };
      if (shown instanceof Error) return refuse(shown.message);
      // It may have been removed, or used once more, while it was being checked.
      const row = known && findPasskey(tx, known.id);
      if (!row) return refuse('unknown passkey');
      if (regresses(row.counter, shown.counter)) {
        const counter = { before: row.counter, now: shown.counter };
        const { user_id, id: passkey_id } = row;
        const about = { user_id, ip: client.ip, level: 'warn' as const, details: { passkey_id, counter } };
        audit.record(tx, { event: 'passkey_counter_regressed', ...about });
        return refuse('its counter went back');
      }
      updatePasskey(tx, row.id, { counter: shown.counter, last_used_at: clock.now() });
      return accounts.open(tx, row.user_id, token, client, 'passkey', { passkey_id: row.id });
    });
    if (!signedIn) throw problems.invalidPasskey();
    return signedIn;
  }

  async rename(caller: Caller, id: string, name: string): Promise<Passkey> {
    return await this.#deps.store.write((tx) => {
      const row = own(tx, caller, id);
      if (row.name === name) return toPasskey(row);
      updatePasskey(tx, id, { name });
      const details = { passkey_id: id, name: { from: row.name, to: name } };
      this.#record(tx, caller, { event: 'passkey_renamed', details });
      return toPasskey({ ...row, name });
    });
  }

  /** Every user has a password, so nobody removes their last way in. */
  async remove(caller: Caller, id: string, current_password: string | undefined): Promise<void> {
    await this.#deps.store.read((reader) => own(reader, caller, id));
    await this.#withPassword(caller, current_password, (tx) => {
      const { name } = own(tx, caller, id);
      deletePasskey(tx, id);
      this.#record(tx, caller, { event: 'passkey_removed', details: { passkey_id: id, name } });
    });
  }

  /** Deletes challenges that are over. */
  sweep(): Promise<number> {
    return this.#deps.store.write((tx) => sweepChallenges(tx, this.#deps.clock.now()));
  }

  #partyFor(origin: string | undefined): RelyingParty {
    const { party, reason } = this.#deps.place();
    if (party === null) throw invalid(reason, 'no_passkeys_here');
    if (origin !== undefined && origin !== party.origin)
      throw invalid(`passkeys work at ${party.origin} only`, 'no_passkeys_here');
    return party;
  }

  /** Runs `act` once the caller's sign-in has shown the password, now or within the last ten minutes. */
  async #withPassword<T>(
    caller: Caller,
    current_password: string | undefined,
    act: (tx: Tx) => T,
  ): Promise<T> {
    const { store, accounts, tokens } = this.#deps;
    await store.read((reader) => tokens.hasShownPassword(reader, caller));
    if (current_password !== undefined) await accounts.showPassword(caller, current_password);
    return await store.write((tx) => {
      if (!tokens.hasShownPassword(tx, caller)) throw problems.passwordRequired();
      return act(tx);
    });
  }

  /** What is to be kept of a new credential. Throws `passkey is not valid`. */
  async #registered(
    response: RegistrationResponse,
    challenge: Uint8Array,
  ): Promise<Pick<PasskeyRow, 'credential_id' | 'public_key' | 'counter' | 'transports'>> {
    const { party } = this.#deps.place();
    if (party === null || isFramed(response.response.clientDataJSON)) throw problems.passkeyNotValid();
    const { verifyRegistrationResponse } = await import('@simplewebauthn/server');
    const { transports } = response.response;
    const verified = await verifyRegistrationResponse({
      response: { ...response, type: response.type as 'public-key', clientExtensionResults: {} },
      expectedChallenge: encode(challenge),
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserPresence: true,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    }).catch(() => null);
    const credential = verified?.verified ? verified.registrationInfo.credential : null;
    if (!credential || credential.id !== response.id) throw problems.passkeyNotValid();
    return {
      credential_id: decode(credential.id),
      public_key: credential.publicKey,
      counter: credential.counter,
      transports: JSON.stringify(transports),
    };
  }

  /** The counter that a login shows. Throws, with a reason that is not for the client. */
  async #shown(
    response: LoginResponse,
    open: { challenge: Uint8Array; expires_at: number } | undefined,
    known: PasskeyRow | undefined,
  ): Promise<{ counter: number }> {
    const { party, reason } = this.#deps.place();
    if (party === null) throw new Error(reason);
    if (!open || open.expires_at <= this.#deps.clock.now()) throw new Error('unknown or old challenge');
    const { clientDataJSON, authenticatorData, signature, userHandle } = response.response;
    if (isFramed(clientDataJSON)) throw new Error('another page is around the one that asked');
    const { verifyAuthenticationResponse } = await import('@simplewebauthn/server');
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: {
        ...response,
        type: response.type as 'public-key',
        response: { clientDataJSON, authenticatorData, signature },
        clientExtensionResults: {},
      },
      expectedChallenge: encode(open.challenge),
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: true,
      // Its count is compared once the signature is known to be good, with the one that is kept by then.
      credential: {
        id: response.id,
        publicKey: known ? new Uint8Array(known.public_key) : this.#stranger,
        counter: 0,
      },
    });
    if (!verified) throw new Error(known ? 'wrong signature' : 'unknown passkey');
    if (known && userHandle !== handleOf(known.user_id)) throw new Error('passkey of another user');
    return { counter: authenticationInfo.newCounter };
  }

  #failed(tx: Tx, client: Client, known: PasskeyRow | undefined, reason: string): void {
    const { audit, clock } = this.#deps;
    const details = {
      ...(known && { passkey_id: known.id }),
      reason: `passkey: ${reason.slice(0, REASON_CHARS_MAX)}`,
    };
    const entry = { user_id: known?.user_id ?? null, ip: client.ip, level: 'warn' as const, details };
    audit.record(tx, { ...entry, event: 'user_login_failed' });
    if (failAddress(tx, client.ip, clock.now()))
      audit.record(tx, { ...entry, event: 'user_login_throttled' });
  }

  #record(tx: Tx, { user_id, ip }: Caller, entry: Pick<AuditEntry, 'event' | 'details'>): void {
    this.#deps.audit.record(tx, { user_id, ip, ...entry });
  }
}

/** The caller's own passkey; another's is as good as none. */
function own(reader: Reader, caller: Caller, id: string): PasskeyRow {
  const row = findPasskey(reader, id);
  if (row?.user_id !== caller.user_id) throw problems.passkeyNotFound();
  return row;
}

/** Two authenticators with one key, or an old copy: the count did not go on. Many never count. */
function regresses(before: number, now: number): boolean {
  return (before > 0 || now > 0) && now <= before;
}

/** The browser says that a page of another origin has the one that asked inside. */
function isFramed(clientDataJSON: string): boolean {
  try {
    const data = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString()) as Record<string, unknown>;
    return data.crossOrigin === true || data.topOrigin !== undefined;
  } catch {
    return true;
  }
}

function toPasskey(row: PasskeyRow): Passkey {
  return {
    id: row.id,
    name: row.name,
    created_at: rfc3339(row.created_at),
    last_used_at: rfc3339OrNull(row.last_used_at),
  };
}

/** What an authenticator keeps of a user, and answers with: the id, which tells nothing. */
function handleOf(user_id: string): string {
  return encode(Buffer.from(user_id));
}

/** The key of nobody: what an unknown passkey is checked against, so that it takes as long as a known one. */
function strangersKey(): Uint8Array<ArrayBuffer> {
  const { x, y } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });
  // COSE: {1: 2 (EC2), 3: -7 (ES256), -1: 1 (P-256), -2: x, -3: y}
  const parts = ['a5010203262001215820', decode(x!).toString('hex'), '225820', decode(y!).toString('hex')];
  return new Uint8Array(Buffer.from(parts.join(''), 'hex'));
}

function encode(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}

function decode(text: string): Buffer {
  return Buffer.from(text, 'base64url');
}
