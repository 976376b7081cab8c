/**
 * The script of the model. It answers a new prompt with a short text and one call of a tool that does what the prompt
 * wants (write, unless it asks to run or fetch), so that the agent must ask for permission. It answers a tool result
 * with a text that quotes it, and small requests besides the conversation with a short text.
 */
import { newSecret } from '../../../base/ids.ts';
import { actOf, answerAboutWord, FETCHED_URL } from '../prompts.ts';
import type { Answer, Call, Conversation, Tool, Turn } from './conversation.ts';
import { fill } from './fill.ts';

const QUOTED_CHARS_MAX = 200;
const CHARS_PER_TOKEN = 4;

const TAG = /(<\/?[a-z][\w-]*>)/;

const WRITES = /^(write|create|save)$|(write|create|save)_?(text_?)?(to_?)?file|text_editor/i;
const RUNS = /(^|[_.-])(bash|shell|exec|execute|command|terminal)([_.-]|$)/i;
const FETCHES = /fetch/i;
const HARMLESS = /output|kill|list|status|stdin|todo|plan|memory|read/i;

export class Script {
  readonly #folder: string;
  #calls = 0;

  /** `folder`: where tools write their files. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  answer(conversation: Conversation): Answer {
    const { text, call } = this.#reply(conversation);
    const chars = conversation.turns.reduce((sum, turn) => sum + turn.text.length, 0);
    const usage = {
      input_tokens: tokens(chars),
      output_tokens: tokens(text.length + JSON.stringify(call?.arguments ?? '').length),
    };
    return { text, call, usage };
  }

  #reply({ turns, tools, answer_schema }: Conversation): Pick<Answer, 'text' | 'call'> {
    if (answer_schema) return textAnswer(JSON.stringify(this.#fill(answer_schema)));
    const { prompt, result, before } = latest(turns);
    const word = prompt && answerAboutWord(prompt, before);
    if (word) return textAnswer(word);
    if (!prompt && result !== null)
      return textAnswer(`The tool answered: ${result.slice(0, QUOTED_CHARS_MAX)}`);
    const tool = toolFor(actOf(prompt), tools);
    if (!tool) return textAnswer('A check of the agent doctor');
    return { text: `I use the tool ${tool.name}.`, call: this.#call(tool) };
  }

  #call(tool: Tool): Call {
    this.#calls++;
    const filled = this.#fill(tool.parameters);
    return {
      id: `call_${newSecret(12)}`,
      name: tool.name,
      arguments: typeof filled === 'object' ? (filled as Record<string, unknown>) : {},
    };
  }

  /** Each call writes a new file, because agents refuse to overwrite a file that they have not read. */
  #fill(schema: Tool['parameters']): unknown {
    const file = `svc-doctor-${this.#calls}.txt`;
    return fill(schema, { folder: this.#folder, file, content: 'hello', url: FETCHED_URL });
  }
}

function textAnswer(text: string): Pick<Answer, 'text' | 'call'> {
  return { text, call: null };
}

function tokens(chars: number): number {
  return Math.ceil(chars / CHARS_PER_TOKEN) + 1;
}

/** To write, a tool that writes files, else one that runs commands; null if no tool fits. */
export function toolFor(act: ReturnType<typeof actOf>, tools: readonly Tool[]): Tool | null {
  const patterns = { write: [WRITES, RUNS], run: [RUNS], fetch: [FETCHES] }[act];
  const acting = tools.filter(({ name }) => !HARMLESS.test(name));
  for (const pattern of patterns) {
    const found = acting.find(({ name }) => pattern.test(name));
    if (found) return found;
  }
  return null;
}

/** What came after the model's last message: a prompt, a tool result without anything after it, or neither. */
function latest(turns: readonly Turn[]): { prompt: string; result: string | null; before: string } {
  const from = turns.findLastIndex(({ role }) => role === 'assistant') + 1;
  const since = turns.slice(from);
  const at = since.findLastIndex(({ role }) => role === 'tool');
  const prompt = since
    .slice(at + 1)
    .map(({ text }) => withoutReminders(text).trim())
    .filter((text) => text !== '')
    .join('\n');
  const before = turns.map(({ text }) => text).join('\n');
  return { prompt, result: at < 0 ? null : since[at]!.text, before };
}

/** Removes tagged text that agents add to the user's prompt. An unclosed tag is ordinary text. */
function withoutReminders(text: string): string {
  const parts = text.split(TAG);
  const last = new Map(parts.map((part, at) => [part, at]));
  const kept: string[] = [];
  for (let at = 0; at < parts.length; at++) {
    const closing = parts[at]!.replace('<', '</');
    const isTag = at % 2 === 1;
    if (isTag && (last.get(closing) ?? -1) > at) at = parts.indexOf(closing, at);
    else kept.push(parts[at]!);
  }
  return kept.join('');
}
