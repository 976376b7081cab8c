/** The messages between a page and the stream hub. Structured clone can copy all of them to another thread. */
import type { Frame, StreamState } from '../../client/client.ts';

export type ToHub =
  /** The first message of a page. The hub uses its token if it has none yet. */
  | { type: 'hello'; token: string | null; visible: boolean }
  | { type: 'token'; token: string | null }
  | { type: 'visible'; visible: boolean }
  /** `subscription`: an id that the page chooses. Begins after an event, `tail` events before the newest, or at the start. */
  | {
      type: 'subscribe';
      subscription: number;
      agent_id: string;
      after: number | null;
      tail?: number | undefined;
    }
  | { type: 'unsubscribe'; subscription: number }
  /** Acknowledges a batch; null: a batch of changes. */
  | { type: 'ack'; subscription: number | null }
  /** Streams that wait retry within a second. `renew`: open connections are replaced even if they seem to be alive. */
  | { type: 'reconnect'; renew: boolean };

export type ToClient =
  | { type: 'welcome' }
  /** Ends the session of a page that uses this token; a page with another token replies with it. */
  | { type: 'signed_out'; token: string }
  /** Changes may have been missed: lists must be read again. Every later change is delivered. */
  | { type: 'reload' }
  | { type: 'changes'; frames: Frame[] }
  | { type: 'fleet_state'; state: StreamState }
  /** `position`: of the last frame. */
  | { type: 'events'; subscription: number; frames: Frame[]; position: number }
  | { type: 'state'; subscription: number; state: StreamState; next_attempt_at: number | null }
  | { type: 'gone'; subscription: number }
  | { type: 'failed'; subscription: number; error: string };
