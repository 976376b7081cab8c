/** OpenAI's responses API: items instead of messages, and a stream of named events. */
import { z } from 'zod';
import { newSecret } from '../../../base/ids.ts';
import { type Answer, type Conversation, type Turn, textOf } from './conversation.ts';
import { type ModelApi, pieces, type StreamEvent } from './shape.ts';

const schema = z.record(z.string(), z.unknown());

const request = z.looseObject({
  model: z.string(),
  stream: z.boolean().nullish(),
  input: z.union([
    z.string(),
    z.array(
      z.looseObject({
        type: z.string().optional(),
        role: z.string().optional(),
        content: z.unknown().optional(),
        output: z.unknown().optional(),
      }),
    ),
  ]),
  tools: z
    .array(
      z.looseObject({
        type: z.string(),
        name: z.string().optional(),
        description: z.string().nullish(),
        parameters: schema.nullish(),
      }),
    )
    .nullish(),
  text: z.looseObject({ format: z.looseObject({ schema: schema.optional() }).nullish() }).nullish(),
});

type Item = Exclude<z.infer<typeof request>['input'], string>[number];

export const openaiResponses: ModelApi = {
  name: 'openai-responses',

  read(body): Conversation {
    const { model, stream, input, tools, text } = request.parse(body);
    return {
      model,
      stream: stream === true,
      turns: typeof input === 'string' ? [{ role: 'user', text: input }] : input.flatMap(turn),
      tools: (tools ?? []).flatMap(({ type, name, description, parameters }) =>
        type === 'function' && name !== undefined
          ? [{ name, description: description ?? '', parameters: parameters ?? {} }]
          : [],
      ),
      answer_schema: text?.format?.schema ?? null,
    };
  },

  complete(answer, { model }) {
    return response(model, `resp_${newSecret(12)}`, answer);
  },

  events(answer, { model }): StreamEvent[] {
    const id = `resp_${newSecret(12)}`;
    const done = response(model, id, answer);
    const begun = { ...done, status: 'in_progress', output: [], usage: null };
    const events: Event[] = [
      { type: 'response.created', response: begun },
      { type: 'response.in_progress', response: begun },
      ...done.output.flatMap((item, output_index) =>
        item.type === 'message' ? messageEvents(item, output_index) : callEvents(item, output_index),
      ),
      { type: 'response.completed', response: done },
    ];
    return events.map((event, sequence_number) => ({
      event: event.type,
      data: { ...event, sequence_number },
    }));
  },

  error: (message) => ({ error: { message, type: 'invalid_request_error', param: null, code: null } }),
};

/**
 * A tool call becomes an assistant turn without text. Only user and assistant messages, tool calls and tool results are read; all
 * other items are ignored.
 */
function turn({ type = 'message', role, content, output }: Item): Turn[] {
  if (type.endsWith('_call_output')) return [{ role: 'tool', text: textOf(output) }];
  if (type.endsWith('_call')) return [{ role: 'assistant', text: '' }];
  if (type !== 'message' || (role !== 'user' && role !== 'assistant')) return [];
  return [{ role, text: textOf(content) }];
}

interface Message {
  type: 'message';
  id: string;
  role: 'assistant';
  status: string;
  content: { type: 'output_text'; text: string; annotations: [] }[];
}

interface FunctionCall {
  type: 'function_call';
  id: string;
  call_id: string;
  name: string;
  arguments: string;
  status: string;
}

interface Event {
  type: string;
  [field: string]: unknown;
}

function response(model: string, id: string, { text, call, usage }: Answer) {
  const output: (Message | FunctionCall)[] = [
    {
      type: 'message',
      id: `msg_${newSecret(12)}`,
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text, annotations: [] }],
    },
  ];
  if (call) {
    output.push({
      type: 'function_call',
      id: `fc_${newSecret(12)}`,
      call_id: call.id,
      name: call.name,
      arguments: JSON.stringify(call.arguments),
      status: 'completed',
    });
  }
  const { input_tokens, output_tokens } = usage;
  return {
    id,
    object: 'response',
    created_at: Math.floor(Date.now() / 1000),
    status: 'completed',
    error: null,
    incomplete_details: null,
    model,
    output,
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    usage: {
      input_tokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: input_tokens + output_tokens,
    },
  };
}

function messageEvents(item: Message, output_index: number): Event[] {
  const part = item.content[0]!;
  const place = { item_id: item.id, output_index, content_index: 0 };
  return [
    {
      type: 'response.output_item.added',
      output_index,
      item: { ...item, status: 'in_progress', content: [] },
    },
    { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
    ...pieces(part.text).map((delta) => ({ type: 'response.output_text.delta', ...place, delta })),
    { type: 'response.output_text.done', ...place, text: part.text },
    { type: 'response.content_part.done', ...place, part },
    { type: 'response.output_item.done', output_index, item },
  ];
}

function callEvents(item: FunctionCall, output_index: number): Event[] {
  const place = { item_id: item.id, output_index };
  const begun = { ...item, status: 'in_progress', arguments: '' };
  return [
    { type: 'response.output_item.added', output_index, item: begun },
    { type: 'response.function_call_arguments.delta', ...place, delta: item.arguments },
    { type: 'response.function_call_arguments.done', ...place, arguments: item.arguments },
    { type: 'response.output_item.done', output_index, item },
  ];
}
