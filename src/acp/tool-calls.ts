/** Tool calls as agents report them: the fields of one report, and the content that a call shows. */
import { asNumber, asRecord, asRecords, asString, type Fields, isRecord } from './json.ts';
import { toV1Content } from './v2/diffs.ts';

export interface Location {
  path: string;
  line: number | null;
}

/** One report of a call. Null, or undefined for values of any type, means that the report does not mention the field. */
export interface ToolCall {
  id: string | null;
  title: string | null;
  /** ACP's `ToolKind`, or any other value that the agent sent. */
  tool_kind: string | null;
  status: string | null;
  locations: readonly Location[] | null;
  /** A list for `readContent`. Any other value means that the report does not mention it. */
  content: unknown;
  raw_input: unknown;
  raw_output: unknown;
}

/** `raw`: the part as the agent sent it, in the form of ACP v1. */
export type Content =
  | { type: 'content'; block: unknown; raw: Fields }
  | {
      type: 'diff';
      path: string;
      /** Null for a new file. */
      old_text: string | null;
      /** Null if the agent sent none. */
      new_text: string | null;
      raw: Fields;
    }
  | { type: 'terminal'; terminal_id: string; raw: Fields }
  | { type: 'unknown'; raw: Fields };

/** Reads a tool call of an update, a permission request or a review. */
export function readToolCall(value: unknown): ToolCall {
  const { toolCallId, title, kind, status, locations, content, rawInput, rawOutput } = asRecord(value);
  return {
    id: asString(toolCallId),
    title: asString(title),
    tool_kind: asString(kind),
    status: asString(status),
    locations: Array.isArray(locations) ? readLocations(locations) : null,
    content,
    raw_input: rawInput,
    raw_output: rawOutput,
  };
}

/** The fields that svc left out of the tool call of a review, because they were too large. */
export function readOmittedFields({ _meta }: Fields): string[] {
  const { omitted } = asRecord(asRecord(_meta).svc);
  return Array.isArray(omitted) ? omitted.filter((name) => typeof name === 'string') : [];
}

function readLocations(locations: readonly unknown[]): Location[] {
  return asRecords(locations).flatMap(({ path, line }) =>
    typeof path === 'string' ? [{ path, line: asNumber(line) }] : [],
  );
}

/** Reads the content of a call. A diff of ACP v2 becomes one diff for each file. */
export function readContent(content: unknown): Content[] {
  return asRecords(toV1Content(content)).map(readPart);
}

function readPart(raw: Fields): Content {
  const { type, content, path, oldText, newText, terminalId } = raw;
  if (type === 'content') return { type, block: content, raw };
  if (type === 'diff') {
    const texts = { old_text: asString(oldText), new_text: asString(newText) };
    return { type, path: asString(path) ?? '', ...texts, raw };
  }
  if (type === 'terminal' && typeof terminalId === 'string') return { type, terminal_id: terminalId, raw };
  return { type: 'unknown', raw };
}

/** An answer that the agent offers, with the agent's wording. */
export interface OfferedOption {
  option_id: string;
  name: string;
  kind: string;
}

/** Null for an option without an id, because it cannot be chosen. */
export function readOption(value: unknown): OfferedOption | null {
  if (!isRecord(value)) return null;
  const option_id = asString(value.optionId);
  if (option_id === null) return null;
  return { option_id, name: asString(value.name) ?? option_id, kind: asString(value.kind) ?? '' };
}

/** The answer to a permission request, from the result of its response. */
export function readOutcome(result: unknown): { outcome: string; option_id: string | null } {
  const { outcome, optionId } = asRecord(asRecord(result).outcome);
  return { outcome: asString(outcome) ?? '', option_id: asString(optionId) };
}
