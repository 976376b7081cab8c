/** One numbered entry of an agent's log, as `interface.md` §3.1 has it. */
export const eventTypes = ['output', 'status', 'acp_event', 'error'] as const;
export type EventType = (typeof eventTypes)[number];

export const streamNames = ['stdout', 'stderr'] as const;
export type StreamName = (typeof streamNames)[number];

/** What is appended to a log; the log adds `agent_id` and `seq`. */
export type EventBody =
  | {
      type: 'output';
      session_id: string;
      ts_ms: number;
      stream: StreamName;
      /** Position of the first byte in the output of its session's stream. */
      offset: number;
      bytes: Uint8Array;
      /** The line goes on in the next event of the stream. */
      partial: boolean;
    }
  | {
      type: 'status' | 'error';
      session_id: string | null;
      ts_ms: number;
      /** The frame's further fields, in the wire's names. */
      fields: Record<string, unknown>;
    }
  | {
      type: 'acp_event';
      session_id: string;
      ts_ms: number;
      /** Beside `payload`. */
      fields: Record<string, unknown>;
      /** The message as it was written: JSON in one line. */
      payload: string;
    };

/** A stored event as `GET …/log` and SSE frames show it. */
export interface EventRecord {
  type: EventType;
  agent_id: string;
  session_id: string | null;
  seq: number;
  /** Unix seconds with a millisecond fraction. */
  ts: number;
  [field: string]: unknown;
}
