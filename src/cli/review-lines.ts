/** A permission review as people read it before they answer (pure): what the agent wants stands there whole. */
import { isRecord, recordsOf } from '../acp/message.ts';
import { blockText, stringOf } from '../acp/reading.ts';
import {
  answerCommands,
  blockLabel,
  diffLines,
  joined,
  type Line,
  locationsOf,
  optionLines,
  titleOf,
} from './acp-lines.ts';
import type { AgentRecord, Api } from './api.ts';
import { span } from './span.ts';
import { visible, visibleLines } from './terminal.ts';

export type ReviewRecord = Awaited<ReturnType<typeof Api.prototype.call<'getReview'>>>;

export function reviewLines(review: ReviewRecord, agent: AgentRecord, now_ms: number): Line[] {
  const { tool_call: call, options } = review;
  return [
    { text: joined(review.id, review.status, answerOf(review)), look: 'bold' },
    { text: joined('agent  ', agent.name, agent.id) },
    { text: joined('folder ', agent.workdir, agent.node_id) },
    { text: joined('waits  ', waitedFor(review, now_ms)) },
    { text: joined('wants  ', titleOf(call), stringOf(call.kind), locationsOf(call)), look: 'yellow' },
    ...inputLines(call.rawInput),
    ...contentLines(call.content),
    ...diffLines(call),
    { text: options.length === 0 ? 'options: none' : 'options' },
    ...optionLines(options),
    ...(review.status === 'pending' ? commandLines(review) : []),
  ];
}

/** The options, and how to name one. */
export function choiceLines({ id, options }: ReviewRecord): string[] {
  return [...optionLines(options).map(({ text }) => text), `svc reviews respond ${id} --option-id <option>`];
}

/** From the question to its answer, or to now: `45s`, `12m`, `3h`, `2d`. */
export function waitedFor({ created_at, answered_at }: ReviewRecord, now_ms: number): string {
  return span(Date.parse(created_at), answered_at === null ? now_ms : Date.parse(answered_at));
}

function answerOf({ options, option_id, answered_by, delivery }: ReviewRecord): string {
  const option = options.find((one) => one.option_id === option_id);
  return [option && `${option.name} (${option.option_id})`, answered_by && `by ${answered_by}`, delivery]
    .filter(Boolean)
    .join(', ');
}

function commandLines({ id, options }: ReviewRecord): Line[] {
  return answerCommands(id, options).map((text) => ({ text, look: 'dim' }));
}

/** What the tool is given: one field after the other. */
function inputLines(input: unknown): Line[] {
  if (input === undefined || input === null) return [];
  if (!isRecord(input)) return valueLines('', input);
  return Object.entries(input).flatMap(([name, value]) => valueLines(`${visible(name)}: `, value));
}

function valueLines(label: string, value: unknown): Line[] {
  const [first, ...rest] = visibleLines(stringOf(value) ?? JSON.stringify(value)).split('\n');
  if (rest.length === 0) return [{ text: `  ${label}${first}` }];
  const lines = [first, ...rest].map((text) => ({ text: `    ${text}` }));
  return label === '' ? lines : [{ text: `  ${label.trimEnd()}` }, ...lines];
}

/** All but diffs, which have lines of their own. */
function contentLines(content: unknown): Line[] {
  return recordsOf(content).flatMap((part) => {
    if (part.type === 'diff') return [];
    const text = blockText(part.content) ?? blockLabel(part.content ?? part);
    return valueLines('', text);
  });
}
