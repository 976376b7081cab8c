/**
 * An agent's stdout as JSON-RPC messages. Passes on only the messages that an ACP client can handle, and counts the
 * rest: lines that are not messages, responses to unknown requests, and very long lines.
 */
import type { AnyMessage } from '@agentclientprotocol/sdk';
import { limits } from '../limits.ts';

const NEWLINE = 0x0a;
const SAMPLE_CHARS = 80;

export interface StdoutFacts {
  frames: number;
  noise_lines: number;
  /** The beginning of the first noise line. */
  noise_sample: string | null;
  /** Responses to unknown requests. */
  stray_responses: number;
  longest_line_bytes: number;
  /** Lines longer than 1 MiB. */
  long_lines: number;
  /** Lines too long to be read. */
  lost_lines: number;
  /** Methods that the agent called although the client did not offer the required capability. */
  not_offered: string[];
}

export function emptyStdoutFacts(): StdoutFacts {
  return {
    frames: 0,
    noise_lines: 0,
    noise_sample: null,
    stray_responses: 0,
    longest_line_bytes: 0,
    long_lines: 0,
    lost_lines: 0,
    not_offered: [],
  };
}

export class FrameReader {
  readonly #facts: StdoutFacts;
  readonly #take: (message: AnyMessage) => void;
  readonly #open_request_ids = new Set<unknown>();
  #pieces: Buffer[] = [];
  #bytes = 0;

  /** `facts` accumulates, because several processes may share it. */
  constructor(facts: StdoutFacts, take: (message: AnyMessage) => void) {
    this.#facts = facts;
    this.#take = take;
  }

  /** Records a request by the client, whose response is then expected. */
  sent(message: AnyMessage): void {
    if ('method' in message && 'id' in message) this.#open_request_ids.add(message.id);
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let to = chunk.indexOf(NEWLINE); to >= 0; to = chunk.indexOf(NEWLINE, from)) {
      this.#add(chunk.subarray(from, to));
      this.end();
      from = to + 1;
    }
    this.#add(chunk.subarray(from));
  }

  /** Ends the current line. Call it at the end of the output too. */
  end(): void {
    const facts = this.#facts;
    facts.longest_line_bytes = Math.max(facts.longest_line_bytes, this.#bytes);
    if (this.#bytes > limits.doctor_line_bytes_long) facts.long_lines++;
    if (this.#bytes > limits.doctor_line_bytes_max) facts.lost_lines++;
    else this.#read(Buffer.concat(this.#pieces).toString().trim());
    this.#pieces = [];
    this.#bytes = 0;
  }

  /** Only the length of a line that is too long is kept. */
  #add(piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#bytes > limits.doctor_line_bytes_max) this.#pieces = [];
    else if (piece.length > 0) this.#pieces.push(piece);
  }

  #read(line: string): void {
    if (line === '') return;
    const message = messageOf(line);
    if (message === null) {
      this.#facts.noise_lines++;
      this.#facts.noise_sample ??= line.slice(0, SAMPLE_CHARS);
    } else if (!('method' in message) && !this.#open_request_ids.delete(message.id))
      this.#facts.stray_responses++;
    else {
      this.#facts.frames++;
      this.#take(message);
    }
  }
}

function messageOf(line: string): AnyMessage | null {
  try {
    const value = JSON.parse(line);
    if (value?.jsonrpc !== '2.0') return null;
    const is_message =
      typeof value.method === 'string' || ('id' in value && ('result' in value || 'error' in value));
    return is_message ? value : null;
  } catch {
    return null;
  }
}
