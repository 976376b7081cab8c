/** What an agent said last in a turn: its last message, from its log. */
import { AGENT_METHODS } from '@agentclientprotocol/sdk';
import { isRecord } from '../../acp/message.ts';
import { limits } from '../../base/limits.ts';
import type { EventRecord } from '../../domain/event.ts';
import { Problem } from '../../domain/problem.ts';
import type { EventLog } from '../../events/log.ts';

/** Updates that tell of work: a message before them was not the last. */
const WORK = ['tool_call', 'tool_call_update', 'agent_thought_chunk', 'plan', 'user_message_chunk'];

/** Null when it said nothing, or its log is no more. At most `step_output_bytes_max` characters, of the end. */
export async function lastWords(log: EventLog, agent_id: string, prompt_id: string): Promise<string | null> {
  const chunks: string[] = [];
  let chars = 0;
  let inside = false;
  try {
    for await (const event of backwards(log, agent_id)) {
      if (event.direction === 'to_agent') {
        // The prompt: the turn began here.
        if (inside && event.method === AGENT_METHODS.session_prompt) break;
        continue;
      }
      inside ||= event.response_to === prompt_id;
      if (!inside) continue;
      const { kind, text } = updateOf(event);
      if (kind === 'agent_message_chunk') {
        chunks.push(text);
        chars += text.length;
        if (chars > limits.step_output_bytes_max) break;
      } else if (chunks.length > 0 && WORK.includes(kind)) break;
    }
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
  }
  if (chunks.length === 0) return null;
  return chunks.reverse().join('').slice(-limits.step_output_bytes_max);
}

/** The agent's messages and ours, newest first. */
async function* backwards(log: EventLog, agent_id: string): AsyncGenerator<EventRecord> {
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const limit = limits.page_items_max;
    const page = await log.page(agent_id, { before, limit, types: ['acp_event'] });
    yield* page.toReversed();
    if (page.length === 0) return;
    before = page[0]!.seq;
  }
}

function updateOf({ payload }: EventRecord): { kind: string; text: string } {
  const params = isRecord(payload) && isRecord(payload.params) ? payload.params : {};
  const update = isRecord(params.update) ? params.update : {};
  const content = isRecord(update.content) ? update.content : {};
  return { kind: String(update.sessionUpdate ?? ''), text: String(content.text ?? '') };
}
