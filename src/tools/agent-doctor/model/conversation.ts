/** The common form of all model APIs: a conversation with tools as input, an answer as output. */

/** A JSON schema from an agent, unvalidated. */
export type JsonSchema = Record<string, unknown>;

export interface Tool {
  name: string;
  description: string;
  parameters: JsonSchema;
}

export interface Turn {
  /** `tool` is the result of a call. */
  role: 'user' | 'assistant' | 'tool';
  text: string;
}

export interface Conversation {
  model: string;
  turns: Turn[];
  tools: Tool[];
  /** The answer must be JSON of this schema; null: text. */
  answer_schema: JsonSchema | null;
  stream: boolean;
  /** Only for an API that sends a stream's usage on request. */
  stream_usage?: boolean;
}

export interface Call {
  id: string;
  name: string;
  arguments: Record<string, unknown>;
}

export interface Answer {
  text: string;
  call: Call | null;
  usage: { input_tokens: number; output_tokens: number };
}

/** The text of a content field: a string, or the text parts of a list. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part) => (typeof part === 'string' ? part : typeof part?.text === 'string' ? part.text : ''))
    .filter((text) => text !== '')
    .join('\n');
}
