/** OpenAI's chat completions API, which most model servers also support. */
import { z } from 'zod';
import { newSecret } from '../../../base/ids.ts';
import { type Answer, type Conversation, type Turn, textOf } from './conversation.ts';
import { type ModelApi, pieces, type StreamEvent } from './shape.ts';

const request = z.looseObject({
  model: z.string(),
  stream: z.boolean().nullish(),
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown().optional() })),
  tools: z
    .array(
      z.looseObject({
        function: z
          .looseObject({
            name: z.string(),
            description: z.string().nullish(),
            parameters: z.record(z.string(), z.unknown()).nullish(),
          })
          .optional(),
      }),
    )
    .nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  response_format: z
    .looseObject({ json_schema: z.looseObject({ schema: z.record(z.string(), z.unknown()) }).optional() })
    .nullish(),
});

const roles: Record<string, Turn['role']> = {
  user: 'user',
  assistant: 'assistant',
  tool: 'tool',
  function: 'tool',
};

export const openaiChat: ModelApi = {
  name: 'openai-chat',

  read(body): Conversation {
    const { model, stream, messages, tools, response_format, stream_options } = request.parse(body);
    return {
      model,
      stream: stream === true,
      stream_usage: stream_options?.include_usage === true,
      turns: messages.flatMap(({ role, content }) =>
        roles[role] ? [{ role: roles[role], text: textOf(content) }] : [],
      ),
      tools: (tools ?? []).flatMap(({ function: tool }) =>
        tool
          ? [{ name: tool.name, description: tool.description ?? '', parameters: tool.parameters ?? {} }]
          : [],
      ),
      answer_schema: response_format?.json_schema?.schema ?? null,
    };
  },

  complete(answer, { model }) {
    const { text, call } = answer;
    const message = {
      role: 'assistant',
      content: text,
      refusal: null,
      ...(call && { tool_calls: [toolCall(call)] }),
    };
    return {
      ...head(model, 'chat.completion'),
      choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(answer) }],
      usage: usageOf(answer),
    };
  },

  events(answer, { model, stream_usage }): StreamEvent[] {
    const { text, call } = answer;
    const common = head(model, 'chat.completion.chunk');
    const chunk = (delta: object, finish_reason: string | null = null): StreamEvent => ({
      data: { ...common, choices: [{ index: 0, delta, logprobs: null, finish_reason }] },
    });
    return [
      chunk({ role: 'assistant', content: '' }),
      ...pieces(text).map((content) => chunk({ content })),
      ...(call ? [chunk({ tool_calls: [{ index: 0, ...toolCall(call) }] })] : []),
      chunk({}, finishOf(answer)),
      ...(stream_usage ? [{ data: { ...common, choices: [], usage: usageOf(answer) } }] : []),
      { data: '[DONE]' },
    ];
  },

  error: (message) => ({ error: { message, type: 'invalid_request_error', param: null, code: null } }),
};

function head(model: string, object: string) {
  return { id: `chatcmpl-${newSecret(12)}`, object, created: Math.floor(Date.now() / 1000), model };
}

function toolCall({ id, name, arguments: args }: NonNullable<Answer['call']>) {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(args) } };
}

function finishOf({ call }: Answer): string {
  return call ? 'tool_calls' : 'stop';
}

function usageOf({ usage: { input_tokens, output_tokens } }: Answer) {
  return {
    prompt_tokens: input_tokens,
    completion_tokens: output_tokens,
    total_tokens: input_tokens + output_tokens,
  };
}
