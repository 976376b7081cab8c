/**
 * An agent's tool calls on the page, and what it asks before it goes on: a call is shown whole once, then only what changes of
 * it; a question with its options and the command that answers it.
 */
import type { ToolKind } from '@agentclientprotocol/sdk';
import { recordsOf } from '../acp/message.ts';
import { type OfferedOption, readOption } from '../acp/permission.ts';
import { type Fields, fieldsOf, stringOf, wordOf } from '../acp/reading.ts';
import { limits } from '../base/limits.ts';
import {
  answerCommands,
  diffLines,
  joined,
  type Line,
  locationsOf,
  optionLines,
  titleOf,
} from './acp-lines.ts';
import type { Page } from './page.ts';
import { visible } from './terminal.ts';

/** As it was shown last. */
interface Call {
  title: string;
  kind: string;
  status: string;
  locations: string;
  diffs: string;
}

interface Question {
  request_id: unknown;
  title: string;
  options: OfferedOption[];
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
  readonly #page: Page;
  readonly #calls = new Map<string, Call>();
  /** By the id of their review. */
  readonly #questions = new Map<string, Question>();

  constructor(page: Page) {
    this.#page = page;
  }

  /** Another session. */
  begin(): void {
    this.#calls.clear();
    this.#questions.clear();
  }

  /** `tool_call` or `tool_call_update`. */
  update(update: Fields): string {
    const id = wordOf(update.toolCallId);
    // A call that begins is another one, though its id was there before.
    const before = update.sessionUpdate === 'tool_call' ? undefined : this.#calls.get(id);
    const locations = Array.isArray(update.locations) ? locationsOf(update) : before?.locations;
    const call: Call = {
      title: stringOf(update.title) ?? before?.title ?? id,
      kind: stringOf(update.kind) ?? before?.kind ?? '',
      status: stringOf(update.status) ?? before?.status ?? '',
      locations: locations ?? '',
      diffs: before?.diffs ?? '',
    };
    keep(this.#calls, id, call);
    const known_kind = kinds.includes(call.kind);
    const changes = [
      call.kind === before?.kind || known_kind ? '' : call.kind,
      call.status === before?.status ? '' : call.status,
      call.locations === before?.locations ? '' : call.locations,
    ];
    const same = before?.title === call.title && changes.every((change) => change === '');
    const look = call.status === 'failed' ? 'red' : 'cyan';
    const label = known_kind ? call.kind : 'tool';
    const head = same ? '' : this.#page.line(label, joined(call.title, ...changes), look);
    return head + this.#diffs(call, update);
  }

  /** `session/request_permission`; `review_id` is null for one that nobody is asked. */
  asks(review_id: string | null, request_id: unknown, { toolCall, options }: Fields): string {
    const asked = fieldsOf(toolCall);
    const known = this.#calls.get(wordOf(asked.toolCallId));
    const call: Call = known ?? { title: titleOf(asked), kind: '', status: '', locations: '', diffs: '' };
    const title = stringOf(asked.title) ?? call.title;
    const parts = [title, stringOf(asked.kind) ?? call.kind, locationsOf(asked) || call.locations];
    const head = this.#page.line('asks', joined(...parts), ['bold', 'yellow']);
    if (review_id === null) return head;
    const offered = recordsOf(options).flatMap((option) => readOption(option) ?? []);
    keep(this.#questions, review_id, { request_id, title, options: offered });
    const command: Line = { text: `  ${answerCommands(review_id, offered)[0]}`, look: 'yellow' };
    return (
      head +
      this.#page.lines(inputStart(asked.rawInput)) +
      this.#diffs(call, asked) +
      this.#page.lines([...optionLines(offered), command])
    );
  }

  /** `by` is null for the service itself. */
  answer(review_id: string, by: string | null, result: Fields): string {
    const question = this.#questions.get(review_id);
    this.#questions.delete(review_id);
    const { outcome, optionId } = fieldsOf(result.outcome);
    const option = question?.options.find(({ option_id }) => option_id === optionId);
    const answer = outcome === 'selected' ? (option?.name ?? wordOf(optionId)) : wordOf(outcome);
    const text = joined(by === null ? answer : `${by}: ${answer}`, question?.title);
    return this.#page.line('answer', text, 'yellow');
  }

  /** The agent no longer waits for the answer to a request of its. */
  withdrawn(request_id: unknown): string {
    for (const [review_id, question] of this.#questions) {
      if (question.request_id !== request_id) continue;
      this.#questions.delete(review_id);
      return this.#page.line('asks', joined('no longer', question.title), 'yellow');
    }
    return '';
  }

  /** Unless they were shown before. */
  #diffs(call: Call, update: Fields): string {
    const lines = diffLines(update, limits.transcript_diff_lines);
    const text = lines.map((line) => line.text).join('\n');
    if (text === '' || text === call.diffs) return '';
    call.diffs = text;
    return this.#page.lines(lines);
  }
}

/** The newest ones: an agent may go on for ever. */
export function keep<K, V>(map: Map<K, V>, key: K, value: V): void {
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > limits.transcript_kept_max) map.delete(oldest!);
}

function inputStart(input: unknown): Line[] {
  if (input === undefined) return [];
  const text = JSON.stringify(input);
  const cut = text.length > limits.transcript_input_chars;
  return [{ text: `  ${visible(text.slice(0, limits.transcript_input_chars))}${cut ? '…' : ''}` }];
}
