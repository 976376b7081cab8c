/** What every shape of the API comes down to: a conversation with tools that goes in, an answer that comes out. */

/** A JSON schema as agents send it; nothing of it is believed. */
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
  /** The answer must be JSON of this schema; null: it is text. */
  answer_schema: JsonSchema | null;
  stream: boolean;
  /** Only where an API sends the usage of a stream to those who ask for it. */
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

/** The text of a content field: a string, or parts of which those with a text count. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part) => (typeof part === 'string' ? part : typeof part?.text === 'string' ? part.text : ''))
    .filter((text) => text !== '')
    .join('\n');
}
