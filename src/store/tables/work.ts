/** Columns of facts, the outbox, timers, nodes and notifications. */
import type { Generated } from 'kysely';
import type { Bool, Json } from './columns.ts';

export interface WorkTables {
  facts: { id: Generated<number>; ts: number; kind: string; ref: string; payload: Json };
  /** How far a consumer is in the facts of one kind. */
  fact_cursors: {
    num: Generated<number>;
    consumer: string;
    /** Empty: where the consumer was when all kinds shared a cursor. Cursors that are missing start there. */
    kind: string;
    fact_id: number;
    /** When a program last used it, so that the cursors of removed consumers can be deleted. */
    used_at: number;
  };
  outbox: {
    id: Generated<number>;
    node_id: string;
    /**
     * Intents of a lane are carried out in order: the id of a session, an agent, a subscription, or an owner and a
     * node.
     */
    lane: string;
    kind: string;
    payload: Json;
    created_at: number;
  };
  timers: { kind: string; ref: string; due_at: number; payload: Json };
  /** Registered remote nodes; the main node has no row. */
  nodes: {
    id: string;
    name: string;
    /** `https://<host>:<port>` */
    grpc_target: string;
    tls_server_name: string | null;
    default_worktree_root: string | null;
    /** The disk that first answered under this id. A node with another disk is a different node. */
    disk_id: string | null;
    /** Number of the newest link. It never decreases, even after the node's deletion. */
    epoch: number;
    joined_at: number | null;
    last_seen_at: number | null;
    version: string | null;
    created_at: number;
    updated_at: number;
  };
  /** Ids of agents and sessions that a node may still have, but that must not reappear. */
  forgotten: { id: string; agent_id: string; node_id: string; created_at: number };
  bootstrap_tokens: {
    id: string;
    created_at: number;
    expires_at: number;
    /** The node that joined with it. */
    spent_by: string | null;
  };
  push_keys: {
    /** Always 1. */
    id: number;
    /** An uncompressed P-256 point, base64url, as browsers expect it. */
    public_key: string;
    /** The private half, encrypted. */
    sealed: Uint8Array;
    created_at: number;
  };
  push_subscriptions: {
    num: Generated<number>;
    id: string;
    user_id: string;
    /**
     * The token that created the subscription. The subscription ends with the token, unless the token expires by age.
     */
    token_id: string;
    /** Secret, because anyone who has it and the plane's key can send to the device. */
    endpoint: string;
    /** The device's public key and secret, base64url. */
    p256dh: string;
    auth: string;
    /** The plane's key at the time of the subscription. */
    public_key: string;
    user_agent: string | null;
    kinds: Json;
    with_commands: Bool;
    of_others: Bool;
    status: 'active' | 'expired';
    /** Consecutive failures. */
    failures: Generated<number>;
    last_error: string | null;
    last_success_at: number | null;
    /** Do not send before this time. */
    retry_at: number | null;
    created_at: number;
  };
  push_messages: {
    num: Generated<number>;
    subscription_num: number;
    tag: string;
    /** The fact that the message reports. It changes when the message is replaced. */
    fact_id: number;
    /** A `PushMessage`. */
    message: Json;
    state: 'pending' | 'sent';
    attempts: number;
    created_at: number;
    /** The message is not sent after this time, and then deleted. */
    expires_at: number;
    /** When the message, or one that it replaced, may have been sent last. */
    sent_at: number | null;
  };
}
