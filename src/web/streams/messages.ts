/** What pages and the owner of the streams say to each other. Everything can be cloned into another thread. */
import type { Frame, StreamState } from '../../client/client.ts';

export type ToOwner =
  /** The first word of a page. Its token counts where the owner has none yet. */
  | { type: 'hello'; token: string | null; visible: boolean }
  | { type: 'token'; token: string | null }
  | { type: 'visible'; visible: boolean }
  /** `watch`: the page's own number for it. From after an event, or `tail` events before the newest, or the beginning. */
  | { type: 'watch'; watch: number; agent_id: string; after: number | null; tail?: number | undefined }
  | { type: 'unwatch'; watch: number }
  /** A batch is dealt with; null: one of changes. */
  | { type: 'taken'; watch: number | null }
  | { type: 'nudge'; renew: boolean };

export type ToPage =
  | { type: 'welcome' }
  /** A page that still has this token is signed out by it; one that has another says so. */
  | { type: 'signed_out'; token: string }
  /** Changes were missed, or may have been: lists are to be loaded again. From here on every change is told. */
  | { type: 'reload' }
  | { type: 'changes'; frames: Frame[] }
  | { type: 'fleet_state'; state: StreamState }
  /** `position`: of the last frame. */
  | { type: 'events'; watch: number; frames: Frame[]; position: number }
  | { type: 'state'; watch: number; state: StreamState; next_attempt_at: number | null }
  | { type: 'gone'; watch: number }
  | { type: 'failed'; watch: number; error: string };
