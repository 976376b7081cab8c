/** `svc logs`: an agent's output as it was, or its whole log as events, up to now or on and on. */
import { styleText } from 'node:util';
import type { Command } from 'commander';
import { limits } from '../base/limits.ts';
import { isFinal } from '../domain/agent.ts';
import type { EventRecord } from '../domain/event.ts';
import { type AgentRecord, type Api, type ApiOptions, connect, findAgent } from './api.ts';
import type { Context, Io } from './context.ts';
import { exitCodes, Failure, usage } from './failure.ts';
import { follow } from './follow.ts';
import { remote, wholeNumber } from './options.ts';
import { colours, print, say } from './output.ts';
import { TerminalFilter, visible } from './terminal.ts';

interface LogsOptions extends ApiOptions, ShowOptions {
  follow?: boolean;
  tail?: number;
}

export interface ShowOptions {
  json?: boolean;
  /** Every event as a line, instead of the output's bytes. */
  events?: boolean;
  /** Bytes as they are, even on a terminal. */
  raw?: boolean;
  stream?: string;
}

export function addLogs(program: Command, context: Context): void {
  const { io } = context;
  remote(program, 'logs <agent>', "show an agent's output")
    .option('-f, --follow', 'go on with what comes, for ever')
    .option('-n, --tail <n>', 'only the last n lines (events with --events or --json)', wholeNumber)
    .option('--events', 'show every event, one per line')
    .option('--stream <name>', 'only stdout, or only stderr')
    .option('--raw', 'do not clean what is written to a terminal')
    .action(async (ref: string, options: LogsOptions) => {
      checkStream(options.stream);
      const api = await connect(context, options);
      const agent = await findAgent(api, ref);
      const asEvents = options.events || options.json;
      const head = agent.last_seq;
      if (!options.follow && (head === 0 || options.tail === 0)) return;
      const lines = asEvents || options.tail === undefined ? null : options.tail;
      const tail = lines === null ? options.tail : lines + limits.cli_tail_spare_events;
      const show = new Show(io, options);
      // Of the past, the last lines are kept until the present is reached; from then on everything is shown.
      const past = lines === null || head === 0 ? null : new LastLines(lines);
      let replaying = past !== null;
      const from = tail === undefined ? ('start' as const) : { tail };
      const reading = { from, signal: io.signal, finite: !options.follow };
      for await (const { seq, event } of follow(io, api, agent.id, reading)) {
        if (event !== null) {
          if (replaying && past && seq <= head) past.add(event);
          else await show.event(event);
        }
        if (replaying && past && seq >= head) {
          replaying = false;
          await past.each((kept) => show.event(kept));
        }
        if (!options.follow && seq >= head) break;
      }
      await show.end();
      if (io.signal.aborted) throw new Failure(exitCodes.interrupted, '');
    });
}

export function checkStream(stream: string | undefined): void {
  if (stream !== undefined && stream !== 'stdout' && stream !== 'stderr') {
    throw usage('--stream must be stdout or stderr');
  }
}

/** Writes events the way the options say. */
export class Show {
  readonly #io: Io;
  readonly #options: ShowOptions;
  readonly #filters: Record<string, TerminalFilter>;
  readonly #clean: boolean;

  constructor(io: Io, options: ShowOptions) {
    this.#io = io;
    this.#options = options;
    this.#clean = Boolean(io.stdout.isTTY) && !options.raw;
    const keep = { colours: colours(io.stdout, io.env) };
    this.#filters = { stdout: new TerminalFilter(keep), stderr: new TerminalFilter(keep) };
  }

  async event(event: EventRecord): Promise<void> {
    const { json, events, stream } = this.#options;
    if (event.type === 'output' && stream !== undefined && event.stream !== stream) return;
    if (json) return print(this.#io, `${JSON.stringify(event)}\n`);
    if (events) return print(this.#io, `${eventLine(event)}\n`);
    if (event.type === 'output') return this.#output(event);
    if (this.#io.stderr.isTTY || event.type === 'error') this.#note(eventWords(event));
  }

  async end(): Promise<void> {
    if (!this.#clean) return;
    const rest = Object.values(this.#filters).map((filter) => filter.end());
    await print(this.#io, rest.find((text) => text !== '') ?? '');
  }

  #output(event: EventRecord): Promise<void> {
    const data = String(event.data);
    const bytes = event.encoding === 'base64' ? Buffer.from(data, 'base64') : data;
    if (!this.#clean) return print(this.#io, bytes);
    const filter = this.#filters[String(event.stream)] ?? this.#filters.stdout!;
    return print(this.#io, filter.write(bytes.toString()));
  }

  #note(words: string): void {
    const line = `-- ${words} --`;
    const dim = colours(this.#io.stderr, this.#io.env);
    say(this.#io, dim ? styleText('dim', line, { validateStream: false }) : line);
  }
}

function eventLine(event: EventRecord): string {
  const time = new Date(event.ts * 1000).toISOString();
  const words =
    event.type === 'output' ? `${event.stream}  ${JSON.stringify(event.data)}` : eventWords(event);
  return `${String(event.seq).padStart(6)}  ${time}  ${event.type.padEnd(9)}  ${visible(words)}`;
}

function eventWords(event: EventRecord): string {
  if (event.type === 'error') return visible(`${event.code}: ${event.error}`);
  if (event.type !== 'status') return visible(String(event.method ?? event.type));
  const { previous_status, status, exit_code, exit_signal, reason, activity } = event;
  const why = [
    exit_code !== undefined && exit_code !== null && `exit code ${exit_code}`,
    exit_signal && `signal ${exit_signal}`,
    reason && reason !== 'exit_code' && reason !== 'signal' && String(reason),
  ].filter(Boolean);
  const from = previous_status && previous_status !== status ? `${previous_status} -> ` : '';
  const doing = activity ? ` (${activity})` : '';
  return visible(`${from}${status}${doing}${why.length > 0 ? `, ${why.join(', ')}` : ''}`);
}

/** The output events that hold the last n lines, bounded by n; events that are no output do not count. */
class LastLines {
  readonly #lines: number;
  #kept: { event: EventRecord; lines: number }[] = [];
  #count = 0;

  constructor(lines: number) {
    this.#lines = lines;
  }

  add(event: EventRecord): void {
    if (event.type !== 'output') return;
    const text = bytesOf(event);
    this.#kept.push({ event, lines: countLines(text) });
    this.#count += this.#kept.at(-1)!.lines;
    while (this.#kept.length > 0 && this.#count - this.#kept[0]!.lines > this.#lines) {
      this.#count -= this.#kept.shift()!.lines;
    }
  }

  async each(show: (event: EventRecord) => Promise<void>): Promise<void> {
    const last = this.#kept.at(-1);
    const open = last && !bytesOf(last.event).endsWith('\n') ? 1 : 0;
    let surplus = this.#count + open - this.#lines;
    for (const { event, lines } of this.#kept) {
      const cut = Math.min(Math.max(surplus, 0), lines);
      surplus -= cut;
      const rest = bytesOf(event).slice(startOfLine(bytesOf(event), cut));
      if (rest !== '') {
        await show({ ...event, data: Buffer.from(rest, 'latin1').toString('base64'), encoding: 'base64' });
      }
    }
    this.#kept = [];
  }
}

/** Output as a string of bytes, so that lines can be cut without decoding. */
function bytesOf(event: EventRecord): string {
  const encoding = event.encoding === 'base64' ? 'base64' : 'utf8';
  return Buffer.from(String(event.data), encoding).toString('latin1');
}

function countLines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

function startOfLine(text: string, line: number): number {
  let at = 0;
  for (let n = 0; n < line; n++) at = text.indexOf('\n', at) + 1;
  return at;
}

export interface WaitOptions extends ShowOptions {
  /** Milliseconds. */
  timeout?: number;
  quiet?: boolean;
}

/**
 * Follows one session to its end, showing it; ends with 3 when it failed or was cancelled, 124 when the time is up.
 * Answers the final record.
 */
export async function followToEnd(
  context: Context,
  api: Api,
  agent: AgentRecord,
  after: number,
  options: WaitOptions,
): Promise<AgentRecord> {
  const { io } = context;
  const timeout = options.timeout === undefined ? null : AbortSignal.timeout(options.timeout);
  const signal = timeout ? AbortSignal.any([io.signal, timeout]) : io.signal;
  const show = options.quiet ? null : new Show(io, options);
  let end: EventRecord | undefined;
  for await (const { event } of follow(io, api, agent.id, { from: { after }, signal })) {
    if (event === null) continue;
    await show?.event(event);
    if (event.type !== 'status' || event.session_id !== agent.session_id) continue;
    if (!isFinal(event.status as never)) continue;
    end = event;
    break;
  }
  await show?.end();
  if (io.signal.aborted) throw new Failure(exitCodes.interrupted, '');
  if (timeout?.aborted) throw new Failure(exitCodes.timeout, `agent ${agent.id} is still running`);
  const now = await api.call('getAgent', { params: { agent_id: agent.id } });
  if (end === undefined || now.session_id === agent.session_id) return now;
  // Started again already: the answer is about the session that was waited for.
  const { status, exit_code = null, exit_signal = null, reason = null } = end as unknown as AgentRecord;
  return { ...now, status, activity: null, exit_code, exit_signal, reason, session_id: agent.session_id };
}

/** Throws exit 3 unless the agent completed. */
export function requireCompleted(agent: AgentRecord): void {
  if (agent.status === 'completed') return;
  const why = agent.exit_signal ?? (agent.exit_code !== null ? `exit code ${agent.exit_code}` : agent.reason);
  throw new Failure(exitCodes.bad_end, `agent ${agent.id} ${agent.status}${why ? `: ${visible(why)}` : ''}`);
}
