/**
 * Formats ACP objects as lines for people (pure): tool calls, diffs, plans, and questions with their options. All text from
 * agents is escaped here, and stays on one line where one line is expected.
 */
import { styleText } from 'node:util';
import { formatPatch, OMIT_HEADERS, structuredPatch } from 'diff';
import stringWidth from 'fast-string-width';
import { blockText } from '../../../acp/blocks.ts';
import { asRecord, asRecords, asString } from '../../../acp/json.ts';
import { readPlanEntry } from '../../../acp/settings.ts';
import {
  type Location,
  type OfferedOption,
  readContent,
  readToolCall,
  type ToolCall,
} from '../../../acp/tool-calls.ts';
import { pad } from '../../../cli/output.ts';
import { printable, printableLines } from '../../../cli/terminal.ts';
import { optionFor } from '../../reviews/rules.ts';
import { limits } from '../limits.ts';

export type TextStyle = Parameters<typeof styleText>[0];

export interface Line {
  text: string;
  style?: TextStyle;
}

export function paint(text: string, style: TextStyle | undefined, colored: boolean): string {
  return colored && style !== undefined ? styleText(style, text, { validateStream: false }) : text;
}

/** Joins the parts of a line and omits missing ones. */
export function joined(...parts: (string | null | undefined)[]): string {
  return parts
    .filter((part) => part)
    .map((part) => printable(part!))
    .join('  ');
}

/** A short description of a content block that is not text. */
export function blockLabel(block: unknown): string {
  const { type, uri, mimeType, name, resource } = asRecord(block);
  const what = asString(uri) ?? asString(asRecord(resource).uri) ?? asString(name) ?? asString(mimeType);
  return `[${joined(asString(type) ?? 'content', what)}]`;
}

export function blockLines(blocks: unknown): string[] {
  return asRecords(blocks).flatMap((block) => {
    const text = blockText(block);
    return text === null ? [blockLabel(block)] : text.split(/\r?\n/).map(printable);
  });
}

/** `path:line` of each location. */
export function locationsText(locations: readonly Location[] | null): string {
  return (locations ?? []).map(({ path, line }) => (line === null ? path : `${path}:${line}`)).join(' ');
}

/** The title of a tool call, in the same form as in a review. */
export function formatTitle(tool_call: unknown): string {
  return callTitle(readToolCall(tool_call));
}

export function callTitle({ title, id }: ToolCall): string {
  return title ?? id ?? 'a tool call';
}

/**
 * Unified diffs of the texts that the agent sent, with a limited number of lines each. `content`: the content of a tool
 * call.
 */
export function diffLines(content: unknown, lines_max = Number.POSITIVE_INFINITY): Line[] {
  return readContent(content).flatMap((part): Line[] => {
    if (part.type !== 'diff') return [];
    const file = printable(part.path);
    return [
      { text: `--- ${part.old_text === null ? '/dev/null' : file}`, style: 'dim' },
      { text: `+++ ${file}`, style: 'dim' },
      ...cutLines(changeLines(part.old_text ?? '', part.new_text ?? ''), lines_max),
    ];
  });
}

const styles: Record<string, TextStyle> = { '-': 'red', '+': 'green', '@': 'cyan' };

function changeLines(before: string, after: string): Line[] {
  const options = { context: 3, timeout: limits.transcript_diff_ms };
  // Undefined if the texts are too different to be compared in time. The old text is then shown before the new one.
  const patch = structuredPatch('', '', lined(before), lined(after), '', '', options);
  const lines = patch
    ? formatPatch(patch, OMIT_HEADERS).trimEnd().split('\n')
    : [...signed('-', before), ...signed('+', after)];
  return lines.map((line): Line => {
    const style = styles[line.charAt(0)];
    return { text: printableLines(line), ...(style && { style }) };
  });
}

/** Normalizes line endings, because differences in them are not worth showing. */
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
  return left > 0 ? [...lines.slice(0, lines_max), { text: `… ${left} more lines`, style: 'dim' }] : lines;
}

export function planLines(entries: unknown): Line[] {
  return asRecords(entries).map((entry) => {
    const { content, status } = readPlanEntry(entry);
    const text = printable(content);
    if (status === 'completed') return { text: `[x] ${text}`, style: 'dim' };
    return { text: `${status === 'in_progress' ? '[>]' : '[ ]'} ${text}` };
  });
}

/** The beginning of a tool's input, or of a person's input. */
export function inputStart(input: unknown): Line[] {
  if (input === undefined) return [];
  const text = JSON.stringify(input);
  const cut = text.length > limits.transcript_input_chars;
  return [{ text: `  ${printable(text.slice(0, limits.transcript_input_chars))}${cut ? '…' : ''}` }];
}

/** An option's id is in brackets, so that it cannot be mistaken for a command. */
export function optionLines(options: readonly OfferedOption[]): Line[] {
  const ids = options.map(({ option_id }) => `[${printable(option_id)}]`);
  const width = Math.max(...ids.map((id) => stringWidth(id)));
  return options.map(({ name, kind }, at) => ({
    text: `  ${pad(ids[at]!, width)}  ${joined(name, kind && `(${kind})`)}`,
  }));
}

/** The commands that answer a review, the simplest first; `allow` and `deny` only if each matches exactly one option. */
export function answerCommands(review_id: string, options: readonly OfferedOption[]): string[] {
  const respond = `svc reviews respond ${review_id}`;
  return [
    ...(optionFor('allow', options) ? [`svc reviews allow ${review_id}`] : []),
    ...(optionFor('deny', options) ? [`svc reviews deny ${review_id}`] : []),
    ...(options.length > 0 ? [`${respond} --option-id <option>`] : []),
    `${respond} --cancel`,
  ];
}
