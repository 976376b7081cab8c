/**
 * Shows an agent's tool calls and permission requests in the transcript. A call is printed in full once; later lines show
 * only the changes. A request is printed with its options and the command that answers it.
 */
import type { ToolKind } from '@agentclientprotocol/sdk';
import { contentTexts } from '../../../acp/blocks.ts';
import type { ReceivedEntry } from '../../../acp/entries.ts';
import type { Fields } from '../../../acp/json.ts';
import { type OfferedOption, readOutcome, type ToolCall } from '../../../acp/tool-calls.ts';
import type { Update } from '../../../acp/updates.ts';
import { printable } from '../../../cli/terminal.ts';
import type { TranscriptLayout } from '../../../cli/transcript-layout.ts';
import { limits } from '../limits.ts';
import {
  answerCommands,
  callTitle,
  diffLines,
  inputStart,
  joined,
  type Line,
  locationsText,
  optionLines,
} from './acp-lines.ts';
import type { By } from './subagent-lines.ts';

/** A call as it was last shown. */
interface ShownCall {
  title: string;
  kind: string;
  status: string;
  locations: string;
  diffs: string;
}

interface OpenRequest {
  request_id: unknown;
  title: string;
  options: readonly OfferedOption[];
}

const kinds: readonly string[] = [
  'read',
  'edit',
  'delete',
  'move',
  'search',
  'execute',
  'think',
  'fetch',
  'switch_mode',
  'other',
] satisfies ToolKind[];

export class ToolCalls {
  readonly #page: TranscriptLayout;
  readonly #calls = new Map<string, ShownCall>();
  /** Requests by review id. */
  readonly #requests = new Map<string, OpenRequest>();

  constructor(page: TranscriptLayout) {
    this.#page = page;
  }

  /** Call this at the start of another session. */
  begin(): void {
    this.#calls.clear();
    this.#requests.clear();
  }

  /** Handles a report of a call. Each sub-agent has its own namespace of call ids. */
  update({ operation, call: report }: Extract<Update, { kind: 'tool_call' }>, by: By | null): string {
    const id = callKey(report, by);
    const before = operation === 'begins' ? undefined : this.#calls.get(id);
    const call: ShownCall = {
      title: report.title ?? before?.title ?? report.id ?? '',
      kind: report.tool_kind ?? before?.kind ?? '',
      status: report.status ?? before?.status ?? '',
      locations: report.locations ? locationsText(report.locations) : (before?.locations ?? ''),
      diffs: before?.diffs ?? '',
    };
    keep(this.#calls, id, call);
    return this.#changes(call, before, by) + this.#diffs(call, report.content);
  }

  #changes(call: ShownCall, before: ShownCall | undefined, by: By | null): string {
    const known_kind = kinds.includes(call.kind);
    const changes = [
      call.kind === before?.kind || known_kind ? '' : call.kind,
      call.status === before?.status ? '' : call.status,
      call.locations === before?.locations ? '' : call.locations,
    ];
    if (before?.title === call.title && changes.every((change) => change === '')) return '';
    const style = call.status === 'failed' ? 'red' : 'cyan';
    return this.#page.line(known_kind ? call.kind : 'tool', named(by, joined(call.title, ...changes)), style);
  }

  /** Handles a permission request. */
  formatRequest(
    request_id: unknown,
    { review_id, call: received, options }: Extract<ReceivedEntry, { kind: 'permission_request' }>,
    by: By | null,
  ): string {
    const known = this.#calls.get(callKey(received, by));
    const call = known ?? { title: callTitle(received), kind: '', status: '', locations: '', diffs: '' };
    const title = received.title ?? call.title;
    const parts = [
      title,
      received.tool_kind ?? call.kind,
      locationsText(received.locations) || call.locations,
    ];
    const head = this.#page.line('asks', named(by, joined(...parts)), ['bold', 'yellow']);
    if (review_id === null) return head;
    keep(this.#requests, review_id, { request_id, title, options });
    const command: Line = { text: `  ${answerCommands(review_id, options)[0]}`, style: 'yellow' };
    return (
      head +
      this.#page.lines(inputStart(received.raw_input)) +
      this.#page.lines(textStart(received.content)) +
      this.#diffs(call, received.content) +
      this.#page.lines([...optionLines(options), command])
    );
  }

  /** `by` is null for the service itself. */
  answer(review_id: string, by: string | null, result: Fields): string {
    const request = this.#requests.get(review_id);
    this.#requests.delete(review_id);
    const { outcome, option_id } = readOutcome(result);
    const option = request?.options.find((option) => option.option_id === option_id);
    const answer = outcome === 'selected' ? (option?.name ?? option_id ?? '') : outcome;
    const text = joined(by === null ? answer : `${by}: ${answer}`, request?.title);
    return this.#page.line('answer', text, 'yellow');
  }

  /** Call this when the agent has withdrawn one of its requests. */
  withdrawn(request_id: unknown): string {
    for (const [review_id, request] of this.#requests) {
      if (request.request_id !== request_id) continue;
      this.#requests.delete(review_id);
      return this.#page.line('asks', joined('no longer', request.title), 'yellow');
    }
    return '';
  }

  /** The diffs, unless they were shown before. */
  #diffs(call: ShownCall, content: unknown): string {
    const lines = diffLines(content, limits.transcript_diff_lines);
    const text = lines.map((line) => line.text).join('\n');
    if (text === '' || text === call.diffs) return '';
    call.diffs = text;
    return this.#page.lines(lines);
  }
}

function callKey({ id }: ToolCall, by: By | null): string {
  return `${by?.scope ?? ''} ${id ?? ''}`;
}

/** Adds the name of the sub-agent if the line comes from one. */
export function named(by: By | null, text: string): string {
  return by === null ? text : `${by.label}: ${text}`;
}

/** Adds an entry and keeps only the newest ones, because a session has no length limit. */
export function keep<K, V>(map: Map<K, V>, key: K, value: V): void {
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > limits.transcript_kept_max) map.delete(oldest!);
}

/** The agent's description of the request. */
function textStart(content: unknown): Line[] {
  const text = contentTexts(content).join('\n');
  if (text === '') return [];
  const cut = text.length > limits.transcript_input_chars;
  const lines = `${text.slice(0, limits.transcript_input_chars)}${cut ? '…' : ''}`.split('\n');
  return lines.map((line) => ({ text: `  ${printable(line)}` }));
}
