import type { Grant } from './grant.ts';

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
 * Who makes a call, as far as rules care. `token_id` names the bearer token that authenticated it; empty: an operator
 * on the internal surface, who needs no token of the user.
 */
export interface Caller {
  user_id: string;
  username: string;
  role: Role;
  token_id: string;
  /** Of an API token; null: everything that the role allows. */
  grant: Grant | null;
  ip: string | null;
}
