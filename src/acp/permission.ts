/** Parses an agent's permission request, keeping what fits into an event. */

import { limits as sharedLimits } from '../base/limits.ts';
import { fits } from './fitting.ts';
import { asRecord, type Fields, isRecord } from './json.ts';
import { limits } from './limits.ts';
import { truncate } from './message.ts';
import { type OfferedOption, readOmittedFields, readOption } from './tool-calls.ts';

export interface Permission {
  /** ACP's tool call, unchanged. If it is too large for an event, shortened like by `shortenToolCall`. */
  tool_call: Fields;
  /** In the agent's order. */
  options: OfferedOption[];
}

/** Null if the request cannot be answered, or if the record could not identify the answer. */
export function readPermission(params: unknown): Permission | null {
  if (!isRecord(params) || !Array.isArray(params.options)) return null;
  const { toolCall } = params;
  if (params.options.length > limits.review_options_max) return null;
  const options = params.options.flatMap((option) => readShortOption(option) ?? []);
  if (options.length < params.options.length || !fits(options) || isAmbiguous(options)) return null;
  return { tool_call: isRecord(toolCall) ? fitIntoEvent(toolCall) : {}, options };
}

/** Null if the option cannot be chosen because its id is missing or too long. A shortened id would be a different one. */
function readShortOption(value: unknown): OfferedOption | null {
  const option = readOption(value);
  if (option === null || option.option_id.length > sharedLimits.acp_text_chars_max) return null;
  return { ...option, name: truncate(option.name), kind: truncate(option.kind) };
}

/** Whether an id occurs twice with different meanings. The record could not say which option was chosen. */
function isAmbiguous(options: readonly OfferedOption[]): boolean {
  const kinds = new Map(options.map(({ option_id, kind }) => [option_id, kind]));
  return options.some(({ option_id, kind }) => kinds.get(option_id) !== kind);
}

function fitIntoEvent(tool_call: Fields): Fields {
  if (JSON.stringify(tool_call).length <= sharedLimits.acp_payload_bytes_max) return tool_call;
  return shortenToolCall(tool_call, limits.acp_state_list_chars_max);
}

/**
 * The fields of a tool call that fit. If any are missing, now or from before, `_meta.svc.omitted` names the first ones
 * (`readOmittedFields`).
 */
export function shortenToolCall(tool_call: Fields, chars_max: number): Fields {
  let remaining_chars = chars_max;
  const omitted = readOmittedFields(tool_call);
  const fields = Object.entries(tool_call).filter(([key, value]) => {
    const chars = key.length + JSON.stringify(value).length;
    if (chars > remaining_chars) {
      omitted.push(key);
      return false;
    }
    remaining_chars -= chars;
    return true;
  });
  const kept = Object.fromEntries(fields);
  if (omitted.length === 0) return kept;
  const first = omitted
    .slice(0, limits.omitted_fields_max)
    .map((name) => name.slice(0, limits.omitted_field_chars_max));
  const meta = asRecord(kept._meta);
  return { ...kept, _meta: { ...meta, svc: { ...asRecord(meta.svc), omitted: first } } };
}
