/** Numbered entries of an agent's log, as `docs/reference/events.md` describes them. */
export const eventTypes = ['output', 'status', 'acp_event', 'error'] as const;
export type EventType = (typeof eventTypes)[number];

export const streamNames = ['stdout', 'stderr'] as const;
export type StreamName = (typeof streamNames)[number];

/** An event before it is appended; the log adds `agent_id` and `seq`. */
export type EventBody =
  | {
      type: 'output';
      session_id: string;
      ts_ms: number;
      stream: StreamName;
      /** Position of the first byte in the output of the session's stream. */
      offset: number;
      bytes: Uint8Array;
      /** The line continues in the next event of the stream. */
      partial: boolean;
    }
  | {
      type: 'status' | 'error';
      session_id: string | null;
      ts_ms: number;
      /** Additional fields of the frame, with their names on the wire. */
      fields: Record<string, unknown>;
    }
  | {
      type: 'acp_event';
      session_id: string;
      ts_ms: number;
      /** Fields besides `payload`. */
      fields: Record<string, unknown>;
      /** The message as received: one line of JSON. */
      payload: string;
    };

/** A stored event, in the form of `GET …/log` and SSE frames. */
export interface EventRecord {
  type: EventType;
  agent_id: string;
  session_id: string | null;
  seq: number;
  /** Unix seconds with a millisecond fraction. */
  ts: number;
  [field: string]: unknown;
}
