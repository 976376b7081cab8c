/** Shows an agent's requests for forms and URLs as lines of the conversation: the request, the answer, and its end. */
import { readElicitation } from '../../../acp/entries.ts';
import { type Fields, toText } from '../../../acp/json.ts';
import type { TranscriptLayout } from '../../../cli/transcript-layout.ts';
import { inputStart, joined } from '../../conversations/commands/acp-lines.ts';
import { keep } from '../../conversations/commands/tool-calls.ts';

export class InputRequests {
  readonly #page: TranscriptLayout;
  /** Open requests by elicitation id. */
  readonly #open = new Map<string, { request_id: unknown; message: string }>();

  constructor(page: TranscriptLayout) {
    this.#page = page;
  }

  /** Call this at the start of another session. */
  begin(): void {
    this.#open.clear();
  }

  /** `elicitation_id` is null for a request that was rejected. */
  formatRequest(request_id: unknown, elicitation_id: string | null, params: unknown): string {
    const { message, url, field_names } = readElicitation(params);
    const what = url ?? (field_names.length > 0 ? `form: ${field_names.join(', ')}` : 'form');
    const head = this.#page.line('asks', joined(message, what), ['bold', 'yellow']);
    if (elicitation_id === null) return head;
    keep(this.#open, elicitation_id, { request_id, message });
    return head + this.#page.lines([{ text: `  svc elicitations show ${elicitation_id}`, style: 'yellow' }]);
  }

  /** `by` is null for the service itself. */
  answer(elicitation_id: string, by: string | null, { action, content }: Fields): string {
    const message = this.#open.get(elicitation_id)?.message;
    this.#open.delete(elicitation_id);
    const answer = toText(action);
    const text = joined(by === null ? answer : `${by}: ${answer}`, message);
    return this.#page.line('answer', text, 'yellow') + this.#page.lines(inputStart(content));
  }

  /** Returns an empty string if the agent withdrew something else. */
  withdrawn(request_id: unknown): string {
    for (const [id, open] of this.#open) {
      if (open.request_id !== request_id) continue;
      this.#open.delete(id);
      return this.#page.line('asks', joined('no longer', open.message), 'yellow');
    }
    return '';
  }
}
