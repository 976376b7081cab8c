/** Columns of the event log and the feed. Only `event-rows/` reads and writes events. */
import type { Generated } from 'kysely';
import type { Bool, Json } from './columns.ts';

export interface EventsTables {
  /** Committed byte offsets: one row per session and stream. */
  spools: {
    session_num: number;
    /** 1 stdout, 2 stderr. */
    stream: number;
    offset: number;
    /** Position in the file = offset - base. It changes if the spool was truncated. */
    base: Generated<number>;
    /** Last ≤ 64 committed bytes. */
    tail: Uint8Array;
    /** Length of the output up to `offset`; null if it is equal to `offset`. Frames and redaction make it differ. */
    output: Generated<number | null>;
  };
  /** The head of each agent's log; separate from `agents` because every batch of output updates it. */
  heads: {
    agent_num: number;
    last_seq: number;
    /** The oldest kept event; last_seq + 1 if there is none. */
    first_seq: number;
    /** Bytes of kept events, in rows and segments. */
    bytes: number;
  };
  /** Recent events; older ones are in segments. */
  events: {
    id: Generated<number>;
    agent_num: number;
    seq: number;
    ts: number;
    /** 1 output, 2 status, 3 acp_event, 4 error. */
    type: number;
    session_num: number | null;
    /** Output: 1 stdout, 2 stderr. */
    stream: number | null;
    /** Output: position in the stream. */
    offset: number | null;
    /** Output, as a bit mask: 1 the line continues in the next event, 2 the bytes are not UTF-8. */
    flags: number | null;
    /** Output: raw bytes. Otherwise the additional fields of the frame as JSON. */
    data: Uint8Array;
  };
  segments: {
    id: Generated<number>;
    agent_num: number;
    first_seq: number;
    last_seq: number;
    last_ts: number;
    /** File name below `{data_dir}/log`; in PostgreSQL, the name of the blocks. */
    path: string;
    bytes: number;
    /** Block index, see `events/segment.ts`. */
    blocks: Uint8Array;
    /** 1 if the rows that the segment replaces have been deleted. */
    swept: Generated<Bool>;
  };
  /** The blocks of segments, in PostgreSQL only. */
  segment_blocks: {
    agent_num: number;
    path: string;
    /** Offset in the segment. */
    at: number;
    data: Uint8Array;
  };
  /** Logs of deleted agents, until their rows and files have been deleted. */
  log_drops: { agent_num: number };
  /** The events of `/api/events`: a record as it was after a change. Kept for 24 hours. */
  feed: {
    id: Generated<number>;
    ts: number;
    kind: string;
    /** The user who may see it, besides root. */
    owner_id: string;
    /** The team whose human members may see it too. */
    team_num: number | null;
    /** The agent that the record is about, or null. */
    agent_id: string | null;
    record: Json;
  };
}
