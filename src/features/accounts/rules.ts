/** Types of users and callers. */
import type { Grant } from '../../core/grant.ts';

export const roles = ['root', 'user'] as const;
export type Role = (typeof roles)[number];

export interface User {
  id: string;
  username: string;
  role: Role;
  /** RFC 3339. */
  created_at: string;
}

export const USERNAME = /^[a-z0-9._-]{1,64}$/;

/**
 * The caller of an operation, with the fields that access rules need. `token_id` is the bearer token that authenticated the
 * caller. It is empty for an operator on the internal interface, which needs no user token.
 */
export interface Caller {
  user_id: string;
  username: string;
  role: Role;
  token_id: string;
  /** For an API token; null: everything that the role allows. */
  grant: Grant | null;
  ip: string | null;
}
