/** Notifications on people's devices: what is told, where to, and the message that a service worker is handed. */

/** What a device can be told of. `review`: somebody has to answer. */
export const pushKinds = ['review', 'agent_failed', 'run_ended'] as const;
export type PushKind = (typeof pushKinds)[number];

/** `expired`: it is told nothing any more until it subscribes again. */
export const pushStatuses = ['active', 'expired'] as const;
export type PushStatus = (typeof pushStatuses)[number];

/** A browser on a device that its user subscribed with. */
export interface PushSubscriptionRecord {
  id: string;
  user_agent: string | null;
  /** Host of the push service that its messages go through. */
  service: string;
  /** SHA-256 of the endpoint, base64url: by it a browser knows which one it is. */
  fingerprint: string;
  kinds: PushKind[];
  with_commands: boolean;
  of_others: boolean;
  status: PushStatus;
  /** Messages in a row that its push service did not take. */
  failures: number;
  last_error: string | null;
  last_success_at: string | null;
  /** It was subscribed by the token that asks. */
  current: boolean;
  created_at: string;
}

/** One message, as a service worker reads it. Nothing in it lets anybody in. */
export interface PushMessage {
  /** `closed`: what its tag was about is over. */
  kind: PushKind | 'closed' | 'test';
  /** What it is about: a later message of the same tag takes its place. */
  tag: string;
  title: string;
  body: string;
  /** Of the web UI, to open. */
  path: string;
  /** How many reviews wait for this person. */
  waiting: number;
}
