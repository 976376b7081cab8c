/**
 * Passkeys, open challenges, and when a sign-in last verified the password. Passkeys are deleted with their user, or by
 * the user. A sign-in has at most one open registration, which is deleted with it. Open logins have no user yet: they
 * are deleted on use, after they expire (housekeeping), and when an address opens too many.
 */
export const sql = `
CREATE TABLE passkeys (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users(id) ON DELETE CASCADE,
  credential_id BLOB NOT NULL UNIQUE,
  public_key BLOB NOT NULL,
  counter INTEGER NOT NULL,
  transports TEXT NOT NULL,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER
);
CREATE INDEX passkeys_user ON passkeys(user_id, created_at);
CREATE TABLE passkey_registrations (
  token_id TEXT PRIMARY KEY REFERENCES tokens(id) ON DELETE CASCADE,
  challenge BLOB NOT NULL,
  expires_at INTEGER NOT NULL
);
CREATE TABLE passkey_logins (
  num INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  challenge BLOB NOT NULL,
  network TEXT NOT NULL,
  expires_at INTEGER NOT NULL
);
CREATE INDEX passkey_logins_network ON passkey_logins(network, num);
ALTER TABLE tokens ADD COLUMN password_at INTEGER;
`;
