/** Types of notifications on people's devices: kinds, devices, and messages to the service worker. */

/** Kinds of notifications. `review`: a request that needs an answer. */
export const pushKinds = ['review', 'agent_failed', 'run_ended'] as const;
export type PushKind = (typeof pushKinds)[number];

/** `expired`: the device gets no notifications until it subscribes again. */
export const pushStatuses = ['active', 'expired'] as const;
export type PushStatus = (typeof pushStatuses)[number];

/** A browser on a device, subscribed by its user. */
export interface PushSubscriptionRecord {
  id: string;
  user_agent: string | null;
  /** Host of the device's push service. */
  service: string;
  /** SHA-256 of the endpoint, base64url; a browser uses it to find its own device. */
  fingerprint: string;
  kinds: PushKind[];
  with_commands: boolean;
  of_others: boolean;
  status: PushStatus;
  /** Number of consecutive messages that the push service did not accept. */
  failures: number;
  last_error: string | null;
  last_success_at: string | null;
  /** Whether the device was subscribed with the token of this request. */
  current: boolean;
  created_at: string;
}

/** A message in the form that the service worker reads. It contains no credentials. */
export interface PushMessage {
  /** `closed`: the subject no longer needs attention. */
  kind: PushKind | 'closed' | 'test';
  /** Identifies the subject. A later message with the same tag replaces this one. */
  tag: string;
  title: string;
  body: string;
  /** Path in the web UI to open. */
  path: string;
  /** Number of reviews, elicitations, questions of steps, waiting runs and sign-ins that are waiting for this person. */
  waiting: number;
}

/** What a notification is about: something that waits for a person, or something that has ended. */
export const tagPrefixes = {
  permission: 'review-',
  elicitation: 'elicitation-',
  question: 'question-',
  run: 'run_wait-',
  sign_in: 'sign_in-',
  agent_failed: 'agent-',
  run_ended: 'run-',
} as const;
export type TagKind = keyof typeof tagPrefixes;

/** The tag of notifications about one subject. Open pages close those about what waits by it. */
export function notificationTag(kind: TagKind, id: string): string {
  return tagPrefixes[kind] + id;
}
