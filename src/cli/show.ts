/** Prints events on stdout and stderr as the options of a command say: bytes, a conversation, lines, or JSON. */
import { toText } from '../acp/json.ts';
import { rawUpdate } from '../acp/updates.ts';
import type { EventRecord } from '../core/event.ts';
import { paint } from '../features/conversations/commands/acp-lines.ts';
import { Transcript } from '../features/conversations/commands/transcript.ts';
import type { Io } from './context.ts';
import { jsonText, print, printStatus, supportsColor } from './output.ts';
import { printable, TerminalFilter } from './terminal.ts';

/** The end of a line, even if colors are reset after it. */
const LINE_END = /\n(?:\x1b\[[\d;:]*m)*$/;

export interface ShowOptions {
  json?: boolean;
  /** Show every event as a line, instead of the output's bytes. */
  events?: boolean;
  /** Write bytes unchanged, even to a terminal; in a conversation, show every frame. */
  raw?: boolean;
  /** In a conversation, also show what sub-agents say and do. */
  subagents?: boolean;
  stream?: string;
}

export class Show {
  readonly #io: Io;
  readonly #options: ShowOptions;
  readonly #filters: Record<string, TerminalFilter>;
  readonly #clean: boolean;
  readonly #transcript: Transcript;
  /** The last line of output has not ended. */
  #output_open = false;

  constructor(io: Io, options: ShowOptions) {
    this.#io = io;
    this.#options = options;
    this.#clean = Boolean(io.stdout.isTTY) && !options.raw;
    const colored = supportsColor(io.stdout, io.env);
    const keep = { colors: colored };
    this.#filters = { stdout: new TerminalFilter(keep), stderr: new TerminalFilter(keep) };
    const { raw: plumbing = false, subagents = false } = options;
    this.#transcript = new Transcript({ colors: colored, plumbing, subagents });
  }

  async event(event: EventRecord): Promise<void> {
    const { json, events } = this.#options;
    await print(this.#io, this.data(event));
    if (json || events || event.type === 'output' || event.type === 'acp_event') return;
    if (this.#io.stderr.isTTY || event.type === 'error') {
      await print(this.#io, this.#transcript.close() + this.#endOutputLine());
      this.#note(describeEvent(event));
    }
  }

  /** The part of an event that goes to stdout. */
  data(event: EventRecord): string | Uint8Array {
    const { json, events, stream } = this.#options;
    if (event.type === 'output' && stream !== undefined && event.stream !== stream) return '';
    if (json) return jsonText(event);
    if (events) return `${eventLine(event)}\n`;
    if (event.type === 'output') return this.#output(event);
    // Conversations go to stdout.
    return event.type === 'acp_event' && stream !== 'stderr' ? this.#spoken(event) : '';
  }

  async end(): Promise<void> {
    await print(this.#io, this.#transcript.close());
    if (!this.#clean) return;
    const rest = Object.values(this.#filters).map((filter) => filter.end());
    await print(this.#io, rest.find((text) => text !== '') ?? '');
  }

  #output(event: EventRecord): string | Uint8Array {
    const before = this.#transcript.close();
    const data = String(event.data);
    const bytes = event.encoding === 'base64' ? Buffer.from(data, 'base64') : data;
    this.#output_open = !LINE_END.test(bytes.toString());
    if (!this.#clean) return before === '' ? bytes : Buffer.concat([Buffer.from(before), Buffer.from(bytes)]);
    const filter = this.#filters[String(event.stream)] ?? this.#filters.stdout!;
    return before + filter.write(bytes.toString());
  }

  #spoken(event: EventRecord): string {
    const text = this.#transcript.event(event);
    if (text === '') return '';
    const before = this.#output_open ? '\n' : '';
    this.#output_open = false;
    return before + text;
  }

  /** On a terminal, a note must not continue a line of output. */
  #endOutputLine(): string {
    if (!this.#output_open || !this.#io.stdout.isTTY || !this.#io.stderr.isTTY) return '';
    this.#output_open = false;
    return '\n';
  }

  #note(message: string): void {
    printStatus(this.#io, paint(`-- ${message} --`, 'dim', supportsColor(this.#io.stderr, this.#io.env)));
  }
}

function eventLine(event: EventRecord): string {
  const time = new Date(event.ts * 1000).toISOString();
  const text =
    event.type === 'output' ? `${event.stream}  ${JSON.stringify(event.data)}` : describeEvent(event);
  return `${String(event.seq).padStart(6)}  ${time}  ${event.type.padEnd(9)}  ${printable(text)}`;
}

function describeEvent(event: EventRecord): string {
  if (event.type === 'error') return printable(`${event.code}: ${event.error}`);
  if (event.type === 'acp_event') return describeFrame(event);
  const { previous_status, status, exit_code, exit_signal, reason, activity } = event;
  const why = [
    exit_code !== undefined && exit_code !== null && `exit code ${exit_code}`,
    exit_signal && `signal ${exit_signal}`,
    reason && reason !== 'exit_code' && reason !== 'signal' && String(reason),
  ].filter(Boolean);
  const from = previous_status && previous_status !== status ? `${previous_status} -> ` : '';
  const doing = activity ? ` (${activity})` : '';
  return printable(`${from}${status}${doing}${why.length > 0 ? `, ${why.join(', ')}` : ''}`);
}

function describeFrame(event: EventRecord): string {
  const { direction, method, response_to, payload, subagent, unknown_session } = event;
  const { sessionUpdate, state } = rawUpdate(payload);
  const what = method === undefined ? `answer to ${toText(response_to)}` : toText(method);
  // A sub-agent's state is an object.
  const labels = [sessionUpdate, typeof state === 'string' ? state : undefined];
  const kind = labels.map((label) => (label === undefined ? '' : ` ${toText(label)}`)).join('');
  const by =
    subagent === undefined
      ? ''
      : ` of ${unknown_session ? 'unknown session' : 'sub-agent'} ${toText(subagent)}`;
  return printable(`${direction === 'to_agent' ? '->' : '<-'} ${what}${kind}${by}`);
}
