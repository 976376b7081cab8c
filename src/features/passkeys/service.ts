/**
 * Passkeys: a sign-in that recently verified the password can add one, which can then sign in instead of it. A challenge is
 * used once, whatever the result. A registration's challenge is bound to its sign-in, a login's to an id that the client sends
 * back. A library verifies signatures and formats, and is loaded on first use; this module defines what to expect of them. A
 * rejected login never says why; the audit log does.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { rfc3339, rfc3339OrNull } from '../../base/clock.ts';
import { newId } from '../../base/ids.ts';
import { networkPrefix } from '../../base/network.ts';
import { invalid, problems } from '../../core/problem.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import type { Accounts, SignedIn } from '../accounts/service.ts';
import { admitAddress, failAddress } from '../accounts/throttle.ts';
import type { Audit, AuditEntry } from '../audit/service.ts';
import { type Client, newToken, type Tokens } from '../tokens/service.ts';
import { limits } from './limits.ts';
import {
  deletePasskey,
  findPasskey,
  insertPasskey,
  listPasskeys,
  openLogin,
  openRegistration,
  type PasskeyRow,
  passkeyOfCredential,
  sweepChallenges,
  takeLogin,
  takeRegistration,
  updatePasskey,
} from './queries.ts';
import type { RelyingParty, RelyingPartyState } from './relying-party.ts';

export interface Passkey {
  id: string;
  name: string;
  created_at: string;
  last_used_at: string | null;
}

/** A browser's response in its JSON form; bytes are base64url. */
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
  relyingParty(): RelyingPartyState;
}

/** EdDSA, ES256, RS256: what current authenticators support, in order of preference. */
const ALGORITHMS = [-8, -7, -257];
/** The key types and curves of these algorithms, as COSE numbers. */
const KEYS: Record<number, { kty: number; crv?: number }> = {
  [-8]: { kty: 1, crv: 6 },
  [-7]: { kty: 2, crv: 1 },
  [-257]: { kty: 3 },
};
const CHALLENGE_BYTES = 32;
const REASON_CHARS_MAX = 200;

export class Passkeys {
  readonly #deps: PasskeysDeps;
  readonly #decoy_key = createDecoyKey();

  constructor(deps: PasskeysDeps) {
    this.#deps = deps;
  }

  /** The relying party, or the reason why passkeys are not available. */
  relyingParty(): RelyingPartyState {
    return this.#deps.relyingParty();
  }

  /** The user's passkeys, oldest first. */
  async list(user_id: string): Promise<Passkey[]> {
    return (await this.#deps.store.read((reader) => listPasskeys(reader, user_id))).map(toPasskey);
  }

  /** Returns the options for the browser. `origin`: of the calling page, if the browser sends it. */
  async startRegistration(
    caller: Caller,
    { current_password, origin }: { current_password?: string | undefined; origin?: string | undefined },
  ) {
    const { clock } = this.#deps;
    const party = this.#partyFor(origin);
    const challenge = randomBytes(CHALLENGE_BYTES);
    const own = await this.#withPassword(caller, current_password, async (tx) => {
      const own = await listPasskeys(tx, caller.user_id);
      if (own.length >= limits.passkeys_per_user) throw problems.tooManyPasskeys();
      const expires_at = clock.now() + limits.passkey_challenge_ms;
      await openRegistration(tx, { token_id: caller.token_id, challenge, expires_at });
      return own;
    });
    const type = 'public-key' as const;
    return {
      challenge: encode(challenge),
      rp: { id: party.id, name: party.name },
      user: { id: userHandleFor(caller.user_id), name: caller.username, displayName: caller.username },
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
   * Stores the passkey. `id` derives from an idempotency key: if it belongs to this credential, the first response was lost.
   */
  async finishRegistration(
    caller: Caller,
    input: { id?: string | undefined; name: string; response: RegistrationResponse },
  ): Promise<Passkey> {
    const { store, clock, tokens } = this.#deps;
    const { name, response } = input;
    const begun = await store.write(async (tx) => {
      const before = input.id === undefined ? undefined : await findPasskey(tx, input.id);
      if (before?.user_id === caller.user_id && encode(before.credential_id) === response.id)
        return { before };
      // Already verified at the start; this call rejects API tokens.
      await tokens.hasRecentPassword(tx, caller);
      return { open: await takeRegistration(tx, caller.token_id) };
    });
    if (begun.before) return toPasskey(begun.before);
    if (!begun.open || begun.open.expires_at <= clock.now()) throw problems.passkeyRegistrationOver();
    const credential = await this.#registered(response, begun.open.challenge);
    const spare = newId('pky');
    return await store.write(async (tx) => {
      // The sign-in may have ended meanwhile, for example because somebody changed the password.
      await tokens.hasRecentPassword(tx, caller);
      if (await passkeyOfCredential(tx, credential.credential_id)) throw problems.passkeyNotValid();
      if ((await listPasskeys(tx, caller.user_id)).length >= limits.passkeys_per_user)
        throw problems.tooManyPasskeys();
      const id = input.id === undefined || (await findPasskey(tx, input.id)) ? spare : input.id;
      const row: PasskeyRow = {
        id,
        user_id: caller.user_id,
        ...credential,
        name,
        created_at: clock.now(),
        last_used_at: null,
      };
      await insertPasskey(tx, row);
      await this.#record(tx, caller, { event: 'passkey_registered', details: { passkey_id: id, name } });
      return toPasskey(row);
    });
  }

  /** Returns the options for the browser; the user chooses the passkey. */
  async startLogin(client: Client, origin: string | undefined) {
    const { store, clock } = this.#deps;
    const party = this.#partyFor(origin);
    const challenge = randomBytes(CHALLENGE_BYTES);
    const id = newId('pkl');
    const expires_at = clock.now() + limits.passkey_challenge_ms;
    await store.write((tx) =>
      openLogin(
        tx,
        { id, challenge, network: networkPrefix(client.ip), expires_at },
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
   * Creates a sign-in. Any error is `passkey was not accepted`, after the same amount of work even if the passkey is unknown.
   * After too many failures from an address, unknown passkeys get a 429. Others share the address, so their passkeys do not.
   */
  finishLogin(login_id: string, response: LoginResponse, client: Client): Promise<SignedIn> {
    const turn = `passkeys ${networkPrefix(client.ip)}`;
    return this.#deps.accounts.inTurn(turn, () => this.#finishLogin(login_id, response, client));
  }

  async #finishLogin(login_id: string, response: LoginResponse, client: Client): Promise<SignedIn> {
    const { store, clock, accounts, audit } = this.#deps;
    const { open, known } = await store.write(async (tx) => {
      const known = await passkeyOfCredential(tx, decode(response.id));
      if (known === undefined) await admitAddress(tx, client.ip, clock.now());
      return { open: await takeLogin(tx, login_id), known };
    });
    const shown = await this.#shown(response, open, known).catch((error: Error) => error);
    const token = newToken();
    const signedIn = await store.write(async (tx) => {
      const refuse = async (reason: string) => {
        await this.#failed(tx, client, known, reason);
        return null;
      };
      if (shown instanceof Error) return refuse(shown.message);
      // It may have been removed, or used again, during the check.
      const row = known && (await findPasskey(tx, known.id));
      if (!row) return refuse('unknown passkey');
      if (regresses(row.counter, shown.counter)) {
        const counter = { before: row.counter, now: shown.counter };
        const { user_id, id: passkey_id } = row;
        const about = { user_id, ip: client.ip, level: 'warn' as const, details: { passkey_id, counter } };
        await audit.record(tx, { event: 'passkey_counter_regressed', ...about });
        return refuse('the counter did not increase');
      }
      await updatePasskey(tx, row.id, { counter: shown.counter, last_used_at: clock.now() });
      return accounts.open(tx, row.user_id, token, client, 'passkey', { passkey_id: row.id });
    });
    if (!signedIn) throw problems.invalidPasskey();
    return signedIn;
  }

  /** Renames one of the caller's own passkeys. The same name changes nothing, and is not audited. */
  async rename(caller: Caller, id: string, name: string): Promise<Passkey> {
    return await this.#deps.store.write(async (tx) => {
      const row = await own(tx, caller, id);
      if (row.name === name) return toPasskey(row);
      await updatePasskey(tx, id, { name });
      const details = { passkey_id: id, name: { from: row.name, to: name } };
      await this.#record(tx, caller, { event: 'passkey_renamed', details });
      return toPasskey({ ...row, name });
    });
  }

  /** Removes a passkey. Every user has a password, so nobody is locked out. */
  async remove(caller: Caller, id: string, current_password: string | undefined): Promise<void> {
    await this.#deps.store.read((reader) => own(reader, caller, id));
    await this.#withPassword(caller, current_password, async (tx) => {
      const { name } = await own(tx, caller, id);
      await deletePasskey(tx, id);
      await this.#record(tx, caller, { event: 'passkey_removed', details: { passkey_id: id, name } });
    });
  }

  /** Deletes expired challenges. */
  sweep(): Promise<number> {
    return this.#deps.store.write((tx) => sweepChallenges(tx, this.#deps.clock.now()));
  }

  #partyFor(origin: string | undefined): RelyingParty {
    const { party, reason } = this.#deps.relyingParty();
    if (party === null) throw invalid(reason, 'no_passkeys_here');
    if (origin !== undefined && origin !== party.origin)
      throw invalid(`passkeys work at ${party.origin} only`, 'no_passkeys_here');
    return party;
  }

  /** Runs `act` if the caller's sign-in verifies the password now, or did within the last ten minutes. */
  async #withPassword<T>(
    caller: Caller,
    current_password: string | undefined,
    act: (tx: Tx) => Promise<T>,
  ): Promise<T> {
    const { store, accounts, tokens } = this.#deps;
    await store.read((reader) => tokens.hasRecentPassword(reader, caller));
    if (current_password !== undefined) await accounts.verifyCurrentPassword(caller, current_password);
    return await store.write(async (tx) => {
      if (!(await tokens.hasRecentPassword(tx, caller))) throw problems.passwordRequired();
      return act(tx);
    });
  }

  /** The values of a new credential to store. Throws `passkey is not valid`. */
  async #registered(
    response: RegistrationResponse,
    challenge: Uint8Array,
  ): Promise<Pick<PasskeyRow, 'credential_id' | 'public_key' | 'counter' | 'transports'>> {
    const { party } = this.#deps.relyingParty();
    if (party === null || isFramed(response.response.clientDataJSON)) throw problems.passkeyNotValid();
    const { verifyRegistrationResponse } = await import('@simplewebauthn/server');
    const { cose, decodeCredentialPublicKey } = await import('@simplewebauthn/server/helpers');
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
    // The library does not check that the key's type matches its algorithm, and verifies by the type.
    const key = decodeCredentialPublicKey(credential.publicKey) as unknown as Map<number, unknown>;
    const { kty, crv } = KEYS[Number(key.get(cose.COSEKEYS.alg))] ?? {};
    const has_type = key.get(cose.COSEKEYS.kty) === kty;
    const has_curve = crv === undefined || key.get(cose.COSEKEYS.crv) === crv;
    if (!has_type || !has_curve) throw problems.passkeyNotValid();
    return {
      credential_id: decode(credential.id),
      public_key: credential.publicKey,
      counter: credential.counter,
      transports: JSON.stringify(transports),
    };
  }

  /** Verifies a login and returns its counter. Throws with a reason that is not for the client. */
  async #shown(
    response: LoginResponse,
    open: { challenge: Uint8Array; expires_at: number } | undefined,
    known: PasskeyRow | undefined,
  ): Promise<{ counter: number }> {
    const { party, reason } = this.#deps.relyingParty();
    if (party === null) throw new Error(reason);
    if (!open || open.expires_at <= this.#deps.clock.now()) throw new Error('unknown or expired challenge');
    const { clientDataJSON, authenticatorData, signature, userHandle } = response.response;
    if (isFramed(clientDataJSON)) throw new Error('the page is embedded in another origin');
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
      // The counter is compared after the signature is verified, with the one stored by then.
      credential: {
        id: response.id,
        publicKey: known ? new Uint8Array(known.public_key) : this.#decoy_key,
        counter: 0,
      },
    });
    if (!verified) throw new Error(known ? 'wrong signature' : 'unknown passkey');
    if (known && userHandle !== userHandleFor(known.user_id)) throw new Error('passkey of another user');
    return { counter: authenticationInfo.newCounter };
  }

  async #failed(tx: Tx, client: Client, known: PasskeyRow | undefined, reason: string): Promise<void> {
    const { audit, clock } = this.#deps;
    const details = {
      ...(known && { passkey_id: known.id }),
      reason: `passkey: ${reason.slice(0, REASON_CHARS_MAX)}`,
    };
    const entry = { user_id: known?.user_id ?? null, ip: client.ip, level: 'warn' as const, details };
    await audit.record(tx, { ...entry, event: 'user_login_failed' });
    if (await failAddress(tx, client.ip, clock.now()))
      await audit.record(tx, { ...entry, event: 'user_login_throttled' });
  }

  async #record(
    tx: Tx,
    { user_id, ip }: Caller,
    entry: Pick<AuditEntry, 'event' | 'details'>,
  ): Promise<void> {
    await this.#deps.audit.record(tx, { user_id, ip, ...entry });
  }
}

/** The caller's own passkey; throws `passkey not found`, even for another user's. */
async function own(reader: Reader, caller: Caller, id: string): Promise<PasskeyRow> {
  const row = await findPasskey(reader, id);
  if (row?.user_id !== caller.user_id) throw problems.passkeyNotFound();
  return row;
}

/** Whether the counter indicates a cloned authenticator. Authenticators without a counter always send 0. */
function regresses(before: number, now: number): boolean {
  return (before > 0 || now > 0) && now <= before;
}

/** Whether the browser reports that a page of another origin embeds the calling page. */
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

/** The user handle that an authenticator stores and returns: the user's id, which reveals nothing else. */
function userHandleFor(user_id: string): string {
  return encode(Buffer.from(user_id));
}

/** A random key to check unknown passkeys against, so that they take as long as known ones. */
function createDecoyKey(): Uint8Array<ArrayBuffer> {
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
