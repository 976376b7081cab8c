/** What an agent asks permission for, as far as it can be read and kept. */
import { limits } from '../base/limits.ts';
import { isRecord, textOf } from './message.ts';

/** What the agent offers as an answer, in its own words. */
export interface OfferedOption {
  option_id: string;
  name: string;
  kind: string;
}

export interface Permission {
  /** ACP's, unchanged; of one that is too large for an event, the parts that fit. */
  tool_call: Record<string, unknown>;
  /** In the agent's order. */
  options: OfferedOption[];
}

/** Null for what nobody could answer. */
export function readPermission(params: unknown): Permission | null {
  if (!isRecord(params) || !Array.isArray(params.options)) return null;
  const { toolCall } = params;
  if (params.options.length > limits.review_options_max) return null;
  const options = params.options.flatMap((option) => readOption(option) ?? []);
  if (options.length < params.options.length) return null;
  return { tool_call: isRecord(toolCall) ? fitting(toolCall) : {}, options };
}

/** Null for what nobody could choose: without an id, or with one that is too long to be kept. */
export function readOption(value: unknown): OfferedOption | null {
  const option_id = textOf(value, 'optionId');
  // Cut short, it would be another one.
  if (!isRecord(value) || option_id === null || option_id !== value.optionId) return null;
  return { option_id, name: textOf(value, 'name') ?? option_id, kind: textOf(value, 'kind') ?? '' };
}

function fitting(tool_call: Record<string, unknown>): Record<string, unknown> {
  if (JSON.stringify(tool_call).length <= limits.acp_payload_bytes_max) return tool_call;
  let left = limits.acp_state_chars_max;
  const fits = Object.entries(tool_call).filter(([key, value]) => {
    const chars = key.length + JSON.stringify(value).length;
    if (chars > left) return false;
    left -= chars;
    return true;
  });
  return Object.fromEntries(fits);
}
