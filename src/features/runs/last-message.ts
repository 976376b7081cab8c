/** Reads the last message of an agent in a turn from its log. It is the output of a step or round, or explains its failure. */
import { AGENT_METHODS } from '@agentclientprotocol/sdk';
import { blocksText } from '../../acp/blocks.ts';
import { readTurnEnd } from '../../acp/entries.ts';
import { asRecord, asString } from '../../acp/json.ts';
import { rawUpdate, readUpdate } from '../../acp/updates.ts';
import { limits } from '../../base/limits.ts';
import type { EventRecord, EventType } from '../../core/event.ts';
import { Problem } from '../../core/problem.ts';
import type { EventLog } from '../../events/log.ts';

/** Updates about work. A message before one of these was not the last message. */
const WORK = [
  ...['tool_call', 'tool_call_update', 'tool_call_content_chunk', 'plan', 'plan_update'],
  ...['agent_thought_chunk', 'agent_thought', 'user_message_chunk', 'user_message'],
  ...['session_message', 'session_message_chunk'],
];

/**
 * Returns null if the agent sent no message, or its log was deleted. A message with more than `limits.step_output_bytes_max`
 * characters is truncated at the start. It has no half of a surrogate pair.
 */
export async function lastMessage(
  log: EventLog,
  agent_id: string,
  prompt_id: string,
): Promise<string | null> {
  const chunks: string[] = [];
  /** Ids of messages that the agent sent again in full after these chunks. */
  const replaced = new Set<unknown>();
  let chars = 0;
  let inside = false;
  try {
    for await (const event of backwards(log, agent_id, 'acp_event')) {
      if (event.direction === 'to_agent') {
        // This is the prompt that started the turn.
        if (inside && event.method === AGENT_METHODS.session_prompt) break;
        continue;
      }
      inside ||= readTurnEnd(event, prompt_id) !== null;
      // Messages of sub-agents are not the agent's own.
      if (!inside || event.subagent !== undefined) continue;
      const { kind, text, message_id, is_complete } = readMessageUpdate(event);
      if (text !== null) {
        if (replaced.has(message_id)) continue;
        if (is_complete) replaced.add(message_id);
        chunks.push(text);
        chars += text.length;
        if (chars > limits.step_output_bytes_max) break;
      } else if (chunks.length > 0 && WORK.includes(kind)) break;
    }
  } catch (error) {
    if (!(error instanceof Problem) || error.kind !== 'not_found') throw error;
  }
  if (chunks.length === 0) return null;
  return chunks.reverse().join('').slice(-limits.step_output_bytes_max).toWellFormed();
}

/** All events of a type, newest first. */
export async function* backwards(
  log: Pick<EventLog, 'page'>,
  agent_id: string,
  type: EventType,
): AsyncGenerator<EventRecord> {
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const limit = limits.page_items_max;
    const { events, has_more } = await log.page(agent_id, { before, limit, types: [type] });
    yield* events.toReversed();
    if (!has_more) return;
    before = events[0]!.seq;
  }
}

/** `text`: null unless the update is part of a message. `is_complete`: the update replaces the earlier chunks of the message. */
function readMessageUpdate({ payload }: EventRecord) {
  const raw = rawUpdate(payload);
  const kind = String(raw.sessionUpdate ?? '');
  const about = { kind, message_id: raw.messageId };
  const update = readUpdate(raw);
  if (update.kind === 'message' && update.message_kind === 'agent_message') {
    return { ...about, text: update.blocks && blocksText(update.blocks), is_complete: true };
  }
  const is_chunk = update.kind === 'chunk' && update.message_kind === 'agent_message';
  return {
    ...about,
    text: is_chunk ? (asString(asRecord(update.block).text) ?? '') : null,
    is_complete: false,
  };
}
