/** Limits of the feature `passkeys`. Names end with their unit. */
import { KIB } from '../../base/limits.ts';

export const limits = {
  /** Passkeys of one user. */
  passkeys_per_user: 50,
  /** Lifetime of a challenge. */
  passkey_challenge_ms: 5 * 60_000,
  /** Open sign-ins of one network. */
  passkey_logins_per_network: 1_000,
  /** Open sign-ins of all networks. */
  passkey_logins_max: 20_000,
  /** Longest id of a passkey: 1,023 bytes (WebAuthn) in base64url. */
  passkey_id_chars_max: 1_364,
  /** Longest data of an authenticator. */
  passkey_data_chars_max: 64 * KIB,
} as const;
