/** A permission review as people read it before they answer (pure): it shows the whole request, or says what it lacks. */
import { blockText } from '../../../acp/blocks.ts';
import { asString, isRecord } from '../../../acp/json.ts';
import { readContent, readOmittedFields, readToolCall } from '../../../acp/tool-calls.ts';
import type { AgentRecord, Api } from '../../../cli/api.ts';
import { formatSpan } from '../../../cli/span.ts';
import { printable, printableLines } from '../../../cli/terminal.ts';
import {
  answerCommands,
  blockLabel,
  callTitle,
  diffLines,
  joined,
  type Line,
  locationsText,
  optionLines,
} from '../../conversations/commands/acp-lines.ts';

export type ReviewRecord = Awaited<ReturnType<typeof Api.prototype.call<'getReview'>>>;

export function reviewLines(review: ReviewRecord, agent: AgentRecord, now_ms: number): Line[] {
  const { options } = review;
  const call = readToolCall(review.tool_call);
  return [
    { text: joined(review.id, review.status, formatAnswer(review)), style: 'bold' },
    { text: joined('agent  ', agent.name, agent.id) },
    { text: joined('folder ', agent.workdir, agent.node_id) },
    { text: joined('waits  ', waitText(review, now_ms)) },
    ...(review.subagent ? [{ text: joined('asker  ', subagentText(review.subagent)) }] : []),
    {
      text: joined('wants  ', callTitle(call), call.tool_kind, locationsText(call.locations)),
      style: 'yellow',
    },
    ...inputLines(call.raw_input),
    ...contentLines(call.content),
    ...diffLines(call.content),
    ...omittedLines(review),
    { text: options.length === 0 ? 'options: none' : 'options' },
    ...optionLines(options),
    ...(review.status === 'pending' ? commandLines(review) : []),
  ];
}

/** The options, and the command that picks one. */
export function choiceLines({ id, options }: ReviewRecord): string[] {
  return [...optionLines(options).map(({ text }) => text), `svc reviews respond ${id} --option-id <option>`];
}

/** The time from the request to its answer, or to now: `45s`, `12m`, `3h`, `2d`. */
export function waitText(
  { created_at, answered_at }: Pick<ReviewRecord, 'created_at' | 'answered_at'>,
  now_ms: number,
): string {
  return formatSpan(Date.parse(created_at), answered_at === null ? now_ms : Date.parse(answered_at));
}

/** The sub-agent that asks; empty for the agent itself. */
export function subagentText({ id, name, unknown_session }: NonNullable<ReviewRecord['subagent']>): string {
  if (unknown_session) return `unknown session ${id}`;
  return name === null ? `sub-agent ${id}` : `sub-agent ${name}`;
}

/** What people do not see here. */
function omittedLines({ tool_call, agent_id }: ReviewRecord): Line[] {
  const omitted = readOmittedFields(tool_call).map(printable);
  if (omitted.length === 0) return [];
  const text = `too large to show in full, without ${omitted.join(', ')}; see svc logs ${agent_id} --json`;
  return [{ text, style: 'yellow' }];
}

function formatAnswer({ options, option_id, answered_by, delivery }: ReviewRecord): string {
  const option = options.find((option) => option.option_id === option_id);
  return [option && `${option.name} (${option.option_id})`, answered_by && `by ${answered_by}`, delivery]
    .filter(Boolean)
    .join(', ');
}

function commandLines({ id, options }: ReviewRecord): Line[] {
  return answerCommands(id, options).map((text) => ({ text, style: 'dim' }));
}

/** The tool's input, one field after the other. */
function inputLines(input: unknown): Line[] {
  if (input === undefined || input === null) return [];
  if (!isRecord(input)) return valueLines('', input);
  return Object.entries(input).flatMap(([name, value]) => valueLines(`${printable(name)}: `, value));
}

function valueLines(label: string, value: unknown): Line[] {
  const [first, ...rest] = printableLines(asString(value) ?? JSON.stringify(value)).split('\n');
  if (rest.length === 0) return [{ text: `  ${label}${first}` }];
  const lines = [first, ...rest].map((text) => ({ text: `    ${text}` }));
  return label === '' ? lines : [{ text: `  ${label.trimEnd()}` }, ...lines];
}

/** All content except diffs, which have their own lines. */
function contentLines(content: unknown): Line[] {
  return readContent(content).flatMap(({ type, raw }) => {
    if (type === 'diff') return [];
    const text = blockText(raw.content) ?? blockLabel(raw.content ?? raw);
    return valueLines('', text);
  });
}
