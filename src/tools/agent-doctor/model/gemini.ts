/** Gemini's generateContent API: the path names the model, and a stream is a sequence of whole responses. */
import { z } from 'zod';
import { newSecret } from '../../../base/ids.ts';
import type { Answer, Conversation, JsonSchema, Turn } from './conversation.ts';
import { type ModelApi, pieces, type StreamEvent } from './shape.ts';

const schema = z.record(z.string(), z.unknown());

const request = z.looseObject({
  contents: z.array(
    z.looseObject({
      role: z.string().nullish(),
      parts: z
        .array(
          z.looseObject({
            text: z.string().optional(),
            functionResponse: z.looseObject({ response: z.unknown().optional() }).optional(),
          }),
        )
        .nullish(),
    }),
  ),
  tools: z
    .array(
      z.looseObject({
        functionDeclarations: z
          .array(
            z.looseObject({
              name: z.string(),
              description: z.string().nullish(),
              parameters: schema.nullish(),
              parametersJsonSchema: schema.nullish(),
            }),
          )
          .nullish(),
      }),
    )
    .nullish(),
  generationConfig: z
    .looseObject({ responseSchema: schema.nullish(), responseJsonSchema: schema.nullish() })
    .nullish(),
});

export const gemini: ModelApi = {
  name: 'gemini',

  read(body, path): Conversation {
    const { contents, tools, generationConfig } = request.parse(body);
    return {
      model: /models\/([^:/]+)/.exec(path)?.[1] ?? '',
      stream: path.includes(':stream'),
      turns: contents.flatMap(({ role, parts }) => (parts ?? []).flatMap((part) => turn(role, part))),
      tools: (tools ?? []).flatMap(({ functionDeclarations }) =>
        (functionDeclarations ?? []).map(({ name, description, parameters, parametersJsonSchema }) => ({
          name,
          description: description ?? '',
          parameters: (parametersJsonSchema ?? parameters ?? {}) as JsonSchema,
        })),
      ),
      answer_schema: generationConfig?.responseJsonSchema ?? generationConfig?.responseSchema ?? null,
    };
  },

  complete(answer, { model }) {
    return respond(model, answer)([{ text: answer.text }, ...callParts(answer)], 'STOP');
  },

  events(answer, { model }): StreamEvent[] {
    const part = respond(model, answer);
    const texts = pieces(answer.text);
    return [
      ...texts.slice(0, -1).map((text) => ({ data: part([{ text }], null) })),
      { data: part([{ text: texts.at(-1) ?? '' }, ...callParts(answer)], 'STOP') },
    ];
  },

  error: (message) => ({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }),
};

function turn(
  role: string | null | undefined,
  part: { text?: string | undefined; functionResponse?: { response?: unknown } | undefined },
): Turn[] {
  if (part.functionResponse)
    return [{ role: 'tool', text: JSON.stringify(part.functionResponse.response ?? '') }];
  if (role === 'model') return [{ role: 'assistant', text: part.text ?? '' }];
  return part.text === undefined ? [] : [{ role: 'user', text: part.text }];
}

function callParts({ call }: Answer): object[] {
  return call ? [{ functionCall: { id: call.id, name: call.name, args: call.arguments } }] : [];
}

/** Builds the parts of one response; a stream has many of them. */
function respond(model: string, { usage: { input_tokens, output_tokens } }: Answer) {
  const responseId = newSecret(12);
  return (parts: object[], finishReason: 'STOP' | null) => ({
    candidates: [{ content: { role: 'model', parts }, index: 0, ...(finishReason && { finishReason }) }],
    usageMetadata: {
      promptTokenCount: input_tokens,
      candidatesTokenCount: output_tokens,
      totalTokenCount: input_tokens + output_tokens,
    },
    modelVersion: model,
    responseId,
  });
}
