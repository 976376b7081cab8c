/** Anthropic's messages API: content is a list of blocks, and tool results are in user messages. */
import { z } from 'zod';
import { newSecret } from '../../../base/ids.ts';
import { type Answer, type Conversation, type Turn, textOf } from './conversation.ts';
import { type ModelApi, pieces, type StreamEvent } from './shape.ts';

const block = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  content: z.unknown().optional(),
});

const request = z.looseObject({
  model: z.string(),
  stream: z.boolean().nullish(),
  messages: z.array(
    z.looseObject({
      role: z.enum(['user', 'assistant', 'system']),
      content: z.union([z.string(), z.array(block)]),
    }),
  ),
  tools: z
    .array(
      z.looseObject({
        name: z.string(),
        description: z.string().nullish(),
        input_schema: z.record(z.string(), z.unknown()).optional(),
      }),
    )
    .nullish(),
  output_config: z
    .looseObject({
      format: z.looseObject({ schema: z.record(z.string(), z.unknown()).optional() }).nullish(),
    })
    .nullish(),
});

export const anthropic: ModelApi = {
  name: 'anthropic',

  read(body): Conversation {
    const { model, stream, messages, tools, output_config } = request.parse(body);
    return {
      model,
      stream: stream === true,
      turns: messages.flatMap(({ role, content }) => (role === 'system' ? [] : turns(role, content))),
      // A tool without a schema runs on the server.
      tools: (tools ?? []).flatMap(({ name, description, input_schema }) =>
        input_schema ? [{ name, description: description ?? '', parameters: input_schema }] : [],
      ),
      answer_schema: output_config?.format?.schema ?? null,
    };
  },

  complete(answer, { model }) {
    const { text, call, usage } = answer;
    const content: object[] = [{ type: 'text', text }];
    if (call) content.push({ ...toolUse(call), input: call.arguments });
    return { ...head(model), content, stop_reason: stopOf(answer), usage };
  },

  events(answer, { model }): StreamEvent[] {
    const { text, call, usage } = answer;
    const begun = { ...head(model), content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } };
    const events = [
      { type: 'message_start', message: begun },
      ...blockEvents(
        0,
        { type: 'text', text: '' },
        pieces(text).map((piece) => ({ type: 'text_delta', text: piece })),
      ),
      ...(call
        ? blockEvents(1, { ...toolUse(call), input: {} }, [
            { type: 'input_json_delta', partial_json: JSON.stringify(call.arguments) },
          ])
        : []),
      {
        type: 'message_delta',
        delta: { stop_reason: stopOf(answer), stop_sequence: null },
        usage: { output_tokens: usage.output_tokens },
      },
      { type: 'message_stop' },
    ];
    return events.map((data) => ({ event: data.type, data }));
  },

  error: (message) => ({ type: 'error', error: { type: 'invalid_request_error', message } }),
};

function turns(role: 'user' | 'assistant', content: string | z.infer<typeof block>[]): Turn[] {
  if (typeof content === 'string') return [{ role, text: content }];
  return content.flatMap((part): Turn[] => {
    if (part.type === 'tool_result') return [{ role: 'tool', text: textOf(part.content) }];
    return role === 'assistant' || part.type === 'text' ? [{ role, text: part.text ?? '' }] : [];
  });
}

function head(model: string) {
  return { id: `msg_${newSecret(12)}`, type: 'message', role: 'assistant', model, stop_sequence: null };
}

function toolUse({ id, name }: NonNullable<Answer['call']>) {
  return { type: 'tool_use', id: id.replace(/^call_/, 'toolu_'), name };
}

function blockEvents(index: number, content_block: object, deltas: object[]) {
  return [
    { type: 'content_block_start', index, content_block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

function stopOf({ call }: Answer): string {
  return call ? 'tool_use' : 'end_turn';
}
