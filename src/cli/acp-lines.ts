/**
 * What ACP's objects are as lines for people (pure): tool calls, diffs, plans, questions with their options. Every text of an
 * agent is made inert here, and holds no line of its own where one is asked for.
 */
import { styleText } from 'node:util';
import { formatPatch, OMIT_HEADERS, structuredPatch } from 'diff';
import stringWidth from 'string-width';
import { recordsOf } from '../acp/message.ts';
import type { OfferedOption } from '../acp/permission.ts';
import { blockText, type Fields, fieldsOf, stringOf } from '../acp/reading.ts';
import { limits } from '../base/limits.ts';
import { optionFor } from '../domain/review.ts';
import { pad } from './output.ts';
import { visible, visibleLines } from './terminal.ts';

export type Look = Parameters<typeof styleText>[0];

export interface Line {
  text: string;
  look?: Look;
}

export function paint(text: string, look: Look | undefined, coloured: boolean): string {
  return coloured && look !== undefined ? styleText(look, text, { validateStream: false }) : text;
}

/** Parts of a line, without those that are not there. */
export function joined(...parts: (string | null | undefined)[]): string {
  return parts
    .filter((part) => part)
    .map((part) => visible(part!))
    .join('  ');
}

/** A content block that is no text, in a few words. */
export function blockLabel(block: unknown): string {
  const { type, uri, mimeType, name, resource } = fieldsOf(block);
  const what = stringOf(uri) ?? stringOf(fieldsOf(resource).uri) ?? stringOf(name) ?? stringOf(mimeType);
  return `[${joined(stringOf(type) ?? 'content', what)}]`;
}

export function blockLines(blocks: unknown): string[] {
  return recordsOf(blocks).flatMap((block) => {
    const text = blockText(block);
    return text === null ? [blockLabel(block)] : text.split(/\r?\n/).map(visible);
  });
}

/** `path:line` of each. */
export function locationsOf(call: Fields): string {
  return recordsOf(call.locations)
    .flatMap(({ path, line }) =>
      typeof path === 'string' ? [typeof line === 'number' ? `${path}:${line}` : path] : [],
    )
    .join(' ');
}

export function titleOf(call: Fields): string {
  return stringOf(call.title) ?? stringOf(call.toolCallId) ?? 'a tool call';
}

/** Unified diffs of the texts that the agent gave, at most so many lines of each. */
export function diffLines(call: Fields, lines_max = Number.POSITIVE_INFINITY): Line[] {
  return recordsOf(call.content).flatMap(({ type, path, oldText, newText }): Line[] => {
    if (type !== 'diff') return [];
    const file = visible(stringOf(path) ?? '');
    return [
      { text: `--- ${typeof oldText === 'string' ? file : '/dev/null'}`, look: 'dim' },
      { text: `+++ ${file}`, look: 'dim' },
      ...cutLines(changeLines(stringOf(oldText) ?? '', stringOf(newText) ?? ''), lines_max),
    ];
  });
}

const looks: Record<string, Look> = { '-': 'red', '+': 'green', '@': 'cyan' };

function changeLines(before: string, after: string): Line[] {
  const options = { context: 3, timeout: limits.transcript_diff_ms };
  // Undefined where the texts have too little in common to be compared in time: then the one stands before the other.
  const patch = structuredPatch('', '', lined(before), lined(after), '', '', options);
  const lines = patch
    ? formatPatch(patch, OMIT_HEADERS).trimEnd().split('\n')
    : [...signed('-', before), ...signed('+', after)];
  return lines.map((line): Line => {
    const look = looks[line.charAt(0)];
    return { text: visibleLines(line), ...(look && { look }) };
  });
}

/** How lines end is no change that people look for. */
function lined(text: string): string {
  return text === '' ? '' : `${text.replace(/\r?\n$/, '').replaceAll('\r\n', '\n')}\n`;
}

function signed(sign: string, text: string): string[] {
  return text === ''
    ? []
    : lined(text)
        .slice(0, -1)
        .split('\n')
        .map((line) => `${sign}${line}`);
}

function cutLines(lines: Line[], lines_max: number): Line[] {
  const left = lines.length - lines_max;
  return left > 0 ? [...lines.slice(0, lines_max), { text: `… ${left} more lines`, look: 'dim' }] : lines;
}

export function planLines(entries: unknown): Line[] {
  return recordsOf(entries).map(({ content, status }) => {
    const text = visible(stringOf(content) ?? '');
    if (status === 'completed') return { text: `[x] ${text}`, look: 'dim' };
    return { text: `${status === 'in_progress' ? '[>]' : '[ ]'} ${text}` };
  });
}

/** An option's id is in brackets, so that it is not taken for a command. */
export function optionLines(options: readonly OfferedOption[]): Line[] {
  const ids = options.map(({ option_id }) => `[${visible(option_id)}]`);
  const width = Math.max(...ids.map((id) => stringWidth(id)));
  return options.map(({ name, kind }, at) => ({
    text: `  ${pad(ids[at]!, width)}  ${joined(name, kind && `(${kind})`)}`,
  }));
}

/** The commands that answer a review, the plainest first; `allow` and `deny` where they stand for one option. */
export function answerCommands(review_id: string, options: readonly OfferedOption[]): string[] {
  const respond = `svc reviews respond ${review_id}`;
  return [
    ...(optionFor('allow', options) ? [`svc reviews allow ${review_id}`] : []),
    ...(optionFor('deny', options) ? [`svc reviews deny ${review_id}`] : []),
    ...(options.length > 0 ? [`${respond} --option-id <option>`] : []),
    `${respond} --cancel`,
  ];
}
