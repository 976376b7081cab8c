/** Types of notifications on people's devices: kinds, devices, and the message for a service worker. */

/** Kinds of notifications. `review`: a request that needs an answer. */
export const pushKinds = ['review', 'agent_failed', 'run_ended'] as const;
export type PushKind = (typeof pushKinds)[number];

/** `expired`: it gets no notifications until it subscribes again. */
export const pushStatuses = ['active', 'expired'] as const;
export type PushStatus = (typeof pushStatuses)[number];

/** A browser on a device, subscribed by its user. */
export interface PushSubscriptionRecord {
  id: string;
  user_agent: string | null;
  /** Host of its push service. */
  service: string;
  /** SHA-256 of the endpoint, base64url; a browser uses it to find its own device. */
  fingerprint: string;
  kinds: PushKind[];
  with_commands: boolean;
  of_others: boolean;
  status: PushStatus;
  /** Number of consecutive messages that its push service did not accept. */
  failures: number;
  last_error: string | null;
  last_success_at: string | null;
  /** Whether the token of the request subscribed it. */
  current: boolean;
  created_at: string;
}

/** A message in the form that a service worker reads. It contains no credentials. */
export interface PushMessage {
  /** `closed`: the subject of its tag is over. */
  kind: PushKind | 'closed' | 'test';
  /** The subject: a later message with the same tag replaces it. */
  tag: string;
  title: string;
  body: string;
  /** Path in the web UI to open. */
  path: string;
  /** Number of reviews and elicitations that wait for this person. */
  waiting: number;
}
