/**
 * A permission review as its card shows it, from the list of reviews or from an agent's log (pure). The record in the list
 * is authoritative; the log is used for reviews that are no longer listed.
 */
import { readOmittedFields, readToolCall } from '../../acp/tool-calls.ts';
import { type Call, mergeCall } from '../../acp/transcript/calls.ts';
import type { Option, Permission, Requester } from '../../acp/transcript/items.ts';
import { escapeHidden } from '../../core/visible.ts';
import type { ReviewRecord } from '../api/queries.ts';

export type Settled =
  | { readonly type: 'chosen'; readonly option: string; readonly by: string | null }
  | { readonly type: 'cancelled'; readonly by: string }
  /** No answer is needed any more. */
  | { readonly type: 'over'; readonly why: 'withdrawn' | 'expired' };

export interface ReviewView {
  readonly review_id: string;
  readonly agent_id: string;
  readonly member: string | null;
  /** The sub-agent that asked; null: the agent itself. */
  readonly requester: Requester | null;
  /** The actor it is routed to; null: everybody who may answer. */
  readonly routed_to: string | null;
  readonly call: Call;
  readonly options: readonly Option[];
  /** Unix milliseconds. */
  readonly asked_at: number;
  readonly settled_at: number | null;
  readonly settled: Settled | null;
  readonly undeliverable: boolean;
  /** Its size in bytes, if the request was too large to keep. */
  readonly too_large: number | null;
  /** What the view lacks, because it was too large: fields of the call, or the rest of them. */
  readonly omitted: readonly string[];
}

export function toReviewView(review: ReviewRecord): ReviewView {
  const call = mergeCall(readToolCall(review.tool_call));
  return {
    review_id: review.id,
    agent_id: review.agent_id,
    member: review.origin_actor_id?.split('@')[0] ?? null,
    requester: review.subagent,
    routed_to: review.routed_to,
    call,
    options: review.options,
    asked_at: Date.parse(review.created_at),
    settled_at: review.answered_at === null ? null : Date.parse(review.answered_at),
    settled: toSettled(review),
    undeliverable: review.delivery === 'undeliverable',
    too_large: null,
    omitted: [...readOmittedFields(review.tool_call), ...cutFields(call)],
  };
}

function toSettled({ status, option_id, options, answered_by }: ReviewRecord): Settled | null {
  if (status === 'pending') return null;
  if (status === 'expired') return { type: 'over', why: 'expired' };
  if (status === 'answered') {
    const option = options.find((option) => option.option_id === option_id);
    return { type: 'chosen', option: option?.name ?? option_id ?? '', by: answered_by };
  }
  return answered_by === null ? { type: 'over', why: 'withdrawn' } : { type: 'cancelled', by: answered_by };
}

/** `review`: the record in the list. A review that either of the two reports as settled is settled. */
export function viewOfItem(item: Permission, agent_id: string, review: ReviewRecord | undefined): ReviewView {
  const settled = itemSettled(item);
  const settled_at = item.settled_ts === null ? null : item.settled_ts * 1000;
  if (review) {
    const view = withWholeCall(toReviewView(review), item);
    if (view.settled || !settled) return view;
    return { ...view, settled, settled_at };
  }
  return {
    review_id: item.review_id,
    agent_id,
    member: null,
    requester: item.requester,
    routed_to: null,
    call: item.call,
    options: item.options,
    asked_at: item.ts * 1000,
    settled_at,
    settled,
    undeliverable: item.undeliverable,
    too_large: item.too_large,
    omitted: cutFields(item.call),
  };
}

/** The log may have the fields that the record lacks. */
function withWholeCall(view: ReviewView, { call, too_large }: Permission): ReviewView {
  return view.omitted.length === 0 || too_large !== null ? view : { ...view, call, omitted: cutFields(call) };
}

/** What was cut from fields that people base their answer on. The command may be in the input. */
function cutFields({ title_cut, locations_cut, raw_input }: Call): string[] {
  return [
    ...(title_cut > 0 ? [`the last ${title_cut} characters of the title`] : []),
    ...(locations_cut > 0 ? [`${locations_cut} locations`] : []),
    ...(raw_input?.truncated ? ['the end of the input'] : []),
  ];
}

function itemSettled({ outcome, answered_by: by }: Permission): Settled | null {
  if (outcome === null) return null;
  if (outcome.type === 'selected') {
    return { type: 'chosen', option: outcome.option?.name ?? outcome.option_id, by };
  }
  return outcome.type === 'cancelled' && by !== null
    ? { type: 'cancelled', by }
    : { type: 'over', why: 'withdrawn' };
}

/** The option that a message can go with; undefined if the agent offers none. */
export function rejection({ options }: Pick<ReviewView, 'options'>): Option | undefined {
  return options.find(({ kind }) => kind === 'reject_once');
}

/**
 * Whether the message of this user went with the answer, even if the response was lost. `last_sent`: what they have last sent
 * with a rejection. Without it, a rejection says nothing about the message: they may have rejected without it.
 */
export function isMessageSent(
  { settled, options }: Pick<ReviewView, 'settled' | 'options'>,
  me: string | null,
  message: { text: string; last_sent: string },
): boolean {
  if (settled?.type !== 'chosen' || me === null || settled.by !== me) return false;
  if (settled.option !== rejection({ options })?.name) return false;
  return message.last_sent !== '' && message.text.trim() === message.last_sent;
}

/** The text of a settled card. `me`: the username of the viewer. */
export function outcomeText({ settled, undeliverable }: ReviewView, me: string | null): string {
  if (settled === null) return '';
  const lost = undeliverable ? ' · the agent was no longer waiting' : '';
  switch (settled.type) {
    case 'chosen': {
      const { option, by } = settled;
      if (by === null || by === me) return [option, by].filter(Boolean).join(' · ') + lost;
      return `Answered by ${by}: ${option}${lost}`;
    }
    case 'cancelled':
      return `Turn cancelled · ${settled.by}${lost}`;
    case 'over':
      return settled.why === 'expired' ? 'Expired: nobody answered in time' : 'No longer needed';
  }
}

/** Who asked, if it was not the agent itself. */
export function requesterText({ id, name, unknown_session }: Requester): string {
  if (unknown_session) return `asked in an unknown session, ${escapeHidden(id)}`;
  return `asked by sub-agent ${escapeHidden(name ?? id)}`;
}

export function isLasting({ kind }: Pick<Option, 'kind'>): boolean {
  return kind.endsWith('_always');
}

/** Groups neighboring options that are lasting or not, in the agent's order. */
export function optionGroups(options: readonly Option[]): { lasting: boolean; options: Option[] }[] {
  const groups: { lasting: boolean; options: Option[] }[] = [];
  for (const option of options) {
    const lasting = isLasting(option);
    if (groups.at(-1)?.lasting === lasting) groups.at(-1)!.options.push(option);
    else groups.push({ lasting, options: [option] });
  }
  return groups;
}

/** The command to run, if the agent gives it separately from the title. */
export function findCommand({ raw_input }: Call): string | null {
  const value = raw_input?.value;
  if (typeof value !== 'object' || value === null) return null;
  const { command, cmd } = value as { command?: unknown; cmd?: unknown };
  const text = command ?? cmd;
  if (typeof text === 'string') return text;
  return Array.isArray(text) && text.every((arg) => typeof arg === 'string') ? text.join(' ') : null;
}

/** The one-time options that all questions have with the same name and kind. */
export function commonOptions(questions: readonly ReviewView[]): Option[] {
  const [first, ...others] = questions;
  if (!first) return [];
  return first.options.filter(
    (option) =>
      !isLasting(option) &&
      others.every(
        ({ options }) => options.some((item) => isSame(item, option)) && isAlone(option, options),
      ) &&
      isAlone(option, first.options),
  );
}

export function sameOption(option: Option, { options }: ReviewView): Option | undefined {
  return options.find((item) => isSame(item, option));
}

function isSame(a: Option, b: Option): boolean {
  return a.name === b.name && a.kind === b.kind;
}

function isAlone(option: Option, options: readonly Option[]): boolean {
  return options.filter((item) => isSame(item, option)).length === 1;
}
