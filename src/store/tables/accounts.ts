/** Columns of users, their tokens and passkeys, sign-ins, the audit log and settings. */
import type { Generated } from 'kysely';
import type { Role } from '../../features/accounts/rules.ts';
import type { AuditEvent, AuditLevel } from '../../features/audit/rules/audit.ts';
import type { Bool, Json } from './columns.ts';

export interface AccountsTables {
  users: {
    id: string;
    username: string;
    role: Role;
    password_hash: string;
    created_at: number;
    updated_at: number;
  };
  tokens: {
    id: string;
    user_id: string;
    kind: 'session' | 'api';
    /** SHA-256 of the opaque token. */
    hash: Uint8Array;
    name: string | null;
    user_agent: string | null;
    ip: string | null;
    created_at: number;
    last_used_at: number;
    /** Idle expiry; null for API tokens without expiry. Extended on use. */
    idle_expires_at: number | null;
    expires_at: number | null;
    /** When this sign-in last verified the password, or null. */
    password_at: number | null;
    /** For API tokens. */
    scopes: Json | null;
    /** Null: not limited to agents. */
    agent_ids: Json | null;
    /** Null: not limited to teams. */
    team_ids: Json | null;
  };
  passkeys: {
    id: string;
    user_id: string;
    credential_id: Uint8Array;
    /** COSE key. */
    public_key: Uint8Array;
    /** The authenticator's signature counter; 0 if it has none. */
    counter: number;
    transports: Json;
    name: string;
    created_at: number;
    last_used_at: number | null;
  };
  passkey_registrations: { token_id: string; challenge: Uint8Array; expires_at: number };
  passkey_logins: {
    num: Generated<number>;
    id: string;
    challenge: Uint8Array;
    network: string;
    expires_at: number;
  };
  join_challenges: {
    id: number;
    token_hash: Uint8Array;
    pin_hash: Uint8Array;
    tries_left: number;
    expires_at: number;
    used: Bool;
  };
  login_throttle: { key: string; failures: number; window_started_at: number; blocked_until: number };
  audit: {
    id: Generated<number>;
    ts: number;
    level: AuditLevel;
    event: AuditEvent;
    agent_id: string | null;
    user_id: string | null;
    ip: string | null;
    workdir: string | null;
    details: Json;
    /** SHA-256 over the previous record's hash and this record's content. */
    hash: Uint8Array;
  };
  idempotency: {
    user_id: string;
    key: string;
    request_hash: Uint8Array;
    /** Null while the first request is in progress. */
    status: number | null;
    body: Json | null;
    location: string | null;
    created_at: number;
    headers: Json | null;
  };
  settings: { key: string; value: Json };
}
