/**
 * Each API with requests as agents send them, reduced to the relevant parts. Answers are reassembled from the stream,
 * as by a client.
 */
import { createParser } from 'eventsource-parser';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ModelServer, openModelServer } from './server.ts';

let server: ModelServer;
beforeEach(async () => {
  server = await openModelServer('/place');
});
afterEach(() => server.close());

async function post(path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  // biome-ignore lint/suspicious/noExplicitAny: as a client without types would read it
  return { status: response.status, json: (await response.json()) as any };
}

// biome-ignore lint/suspicious/noExplicitAny: as a client without types would read it
async function stream(path: string, body: unknown): Promise<{ event: string | undefined; data: any }[]> {
  const response = await fetch(server.url + path, { method: 'POST', body: JSON.stringify(body) });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const events: Awaited<ReturnType<typeof stream>> = [];
  const parser = createParser({
    onEvent: ({ event, data }) => events.push({ event, data: data === '[DONE]' ? data : JSON.parse(data) }),
  });
  parser.feed(await response.text());
  return events;
}

const parameters = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: {
    file_path: { description: 'The absolute path to the file to write', type: 'string' },
    content: { description: 'The content to write to the file', type: 'string' },
  },
  required: ['file_path', 'content'],
  additionalProperties: false,
};
const filled = { file_path: '/place/svc-doctor-1.txt', content: 'hello' };

const prompt = 'Write the text "hello" into a new file.';
const result = 'File created successfully at: /place/svc-doctor-1.txt';

test('OpenAI chat completions: a stream with a call, its usage on request, a text for the result', async () => {
  const body = {
    model: 'svc-scripted',
    messages: [
      { role: 'system', content: 'You are an interactive CLI agent.' },
      { role: 'user', content: [{ type: 'text', text: prompt }] },
    ],
    stream: true,
    stream_options: { include_usage: true },
    tools: [
      { type: 'function', function: { name: 'write_file', description: 'Writes content', parameters } },
    ],
    max_tokens: 8000,
  };
  const events = await stream('/v1/chat/completions', body);
  expect(events.at(-1)!.data).toBe('[DONE]');
  const chunks = events.slice(0, -1).map(({ data }) => data);
  expect(new Set(chunks.map(({ object, model }) => `${object} ${model}`))).toEqual(
    new Set(['chat.completion.chunk svc-scripted']),
  );
  const usage = chunks.at(-1);
  expect(usage.choices).toEqual([]);
  expect(usage.usage.total_tokens).toBe(usage.usage.prompt_tokens + usage.usage.completion_tokens);
  const deltas = chunks.slice(0, -1).map(({ choices }) => choices[0]);
  expect(deltas[0].delta.role).toBe('assistant');
  expect(deltas.map(({ delta }) => delta.content ?? '').join('')).toBe('I use the tool write_file.');
  const call = deltas.flatMap(({ delta }) => delta.tool_calls ?? [])[0];
  expect(call).toMatchObject({ index: 0, type: 'function', function: { name: 'write_file' } });
  expect(JSON.parse(call.function.arguments)).toEqual(filled);
  expect(deltas.map(({ finish_reason }) => finish_reason).filter(Boolean)).toEqual(['tool_calls']);

  const messages = [
    ...body.messages,
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: call.id, content: result },
  ];
  const { json } = await post('/v1/chat/completions', {
    ...body,
    messages,
    stream: false,
    stream_options: undefined,
  });
  expect(json).toMatchObject({ object: 'chat.completion', usage: { total_tokens: expect.any(Number) } });
  expect(json.choices).toEqual([
    {
      index: 0,
      message: { role: 'assistant', content: `The tool answered: ${result}`, refusal: null },
      logprobs: null,
      finish_reason: 'stop',
    },
  ]);
  const quiet = await stream('/v1/chat/completions', { ...body, stream_options: undefined });
  expect(quiet.filter(({ data }) => data.usage)).toEqual([]);
});

test('OpenAI responses: numbered events from created to completed, and items that come back', async () => {
  const exec = {
    type: 'object',
    properties: {
      cmd: { type: 'string', description: 'Shell command to execute.' },
      sandbox_permissions: { type: 'string', enum: ['use_default', 'require_escalated'] },
    },
    required: ['cmd'],
  };
  const body = {
    model: 'svc-scripted',
    instructions: 'You are a coding agent.',
    input: [
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Rules.' }] },
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: '<environment_context>\n<cwd>/place</cwd>\n</environment_context>' },
        ],
      },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: prompt }] },
    ],
    tools: [
      { type: 'function', name: 'exec_command', strict: false, parameters: exec },
      { type: 'custom', name: 'apply_patch', format: { type: 'grammar' } },
      { type: 'web_search' },
    ],
    tool_choice: 'auto',
    store: false,
    stream: true,
  };
  const events = await stream('/v1/responses', body);
  expect(events.map(({ event }) => event)).toEqual(events.map(({ data }) => data.type));
  expect(events.map(({ data }) => data.sequence_number)).toEqual(events.map((_, at) => at));
  expect([events[0]!.event, events.at(-1)!.event]).toEqual(['response.created', 'response.completed']);
  const items = events
    .filter(({ event }) => event === 'response.output_item.done')
    .map(({ data }) => data.item);
  const { output, usage, status } = events.at(-1)!.data.response;
  expect(output).toEqual(items);
  expect(status).toBe('completed');
  expect(usage.total_tokens).toBe(usage.input_tokens + usage.output_tokens);
  const deltas = events.filter(({ event }) => event === 'response.output_text.delta');
  expect(deltas.map(({ data }) => data.delta).join('')).toBe(items[0].content[0].text);
  expect(items[1]).toMatchObject({ type: 'function_call', name: 'exec_command' });
  expect(JSON.parse(items[1].arguments)).toEqual({
    cmd: "echo 'hello' > svc-doctor-1.txt",
    sandbox_permissions: 'require_escalated',
  });

  const input = [
    ...body.input,
    ...items,
    { type: 'function_call_output', call_id: items[1].call_id, output: 'Exit code: 0' },
  ];
  const { json } = await post('/v1/responses', { ...body, input, stream: false });
  expect(json).toMatchObject({ object: 'response', status: 'completed', error: null });
  expect(json.output.map(({ type }: { type: string }) => type)).toEqual(['message']);
  expect(json.output[0].content[0].text).toBe('The tool answered: Exit code: 0');
});

test('Anthropic messages: blocks in order, a call as JSON in pieces, results in the turn of the user', async () => {
  const body = {
    model: 'claude-opus',
    max_tokens: 64000,
    system: [{ type: 'text', text: 'You are an agent.', cache_control: { type: 'ephemeral' } }],
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: '<system-reminder>\nSome context.\n</system-reminder>\n\n' },
          { type: 'text', text: prompt },
        ],
      },
    ],
    tools: [
      { name: 'Write', description: 'Writes a file', input_schema: parameters },
      { type: 'web_search_20250305', name: 'web_search' },
    ],
    stream: true,
  };
  const events = await stream('/v1/messages?beta=true', body);
  expect(events.map(({ event }) => event)).toEqual(events.map(({ data }) => data.type));
  const kinds = events.map(({ event }) => event).filter((event, at, all) => event !== all[at - 1]);
  const block = ['content_block_start', 'content_block_delta', 'content_block_stop'];
  expect(kinds).toEqual(['message_start', ...block, ...block, 'message_delta', 'message_stop']);
  expect(events[0]!.data.message).toMatchObject({
    type: 'message',
    role: 'assistant',
    content: [],
    stop_reason: null,
  });
  const starts = events
    .filter(({ event }) => event === 'content_block_start')
    .map(({ data }) => data.content_block);
  expect(starts).toEqual([
    { type: 'text', text: '' },
    { type: 'tool_use', id: expect.stringMatching(/^toolu_/), name: 'Write', input: {} },
  ]);
  const deltas = events.filter(({ event }) => event === 'content_block_delta').map(({ data }) => data.delta);
  expect(deltas.map(({ text }) => text ?? '').join('')).toBe('I use the tool Write.');
  expect(JSON.parse(deltas.map(({ partial_json }) => partial_json ?? '').join(''))).toEqual(filled);
  expect(events.at(-2)!.data).toMatchObject({
    delta: { stop_reason: 'tool_use' },
    usage: { output_tokens: expect.any(Number) },
  });

  const messages = [
    ...body.messages,
    { role: 'system', content: 'Available agent types: none' },
    { role: 'assistant', content: [{ ...starts[1], input: filled }] },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: starts[1].id, content: [{ type: 'text', text: result }] },
      ],
    },
  ];
  const { json } = await post('/v1/messages', { ...body, messages, stream: false });
  expect(json).toMatchObject({
    type: 'message',
    stop_reason: 'end_turn',
    content: [{ type: 'text', text: `The tool answered: ${result}` }],
    usage: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) },
  });
  const counted = await post('/v1/messages/count_tokens', { ...body, stream: undefined });
  expect(counted.json).toEqual({ input_tokens: expect.any(Number) });
});

test('Gemini: parts that stream, a call with its arguments, JSON where a schema is given', async () => {
  const body = {
    contents: [
      {
        role: 'user',
        parts: [{ text: '<session_context>\nThe context.\n</session_context>' }, { text: prompt }],
      },
    ],
    systemInstruction: { role: 'user', parts: [{ text: 'You are an agent.' }] },
    tools: [
      {
        functionDeclarations: [
          { name: 'write_file', description: 'Writes', parametersJsonSchema: parameters },
        ],
      },
    ],
    generationConfig: { temperature: 1, thinkingConfig: { includeThoughts: true } },
  };
  const path = '/v1beta/models/gemini-pro';
  const chunks = (await stream(`${path}:streamGenerateContent?alt=sse`, body)).map(({ data }) => data);
  const parts = chunks.flatMap(({ candidates }) => candidates[0].content.parts);
  expect(parts.map(({ text }) => text ?? '').join('')).toBe('I use the tool write_file.');
  expect(parts.at(-1).functionCall).toMatchObject({ name: 'write_file', args: filled });
  expect(chunks.map(({ candidates }) => candidates[0].finishReason).filter(Boolean)).toEqual(['STOP']);
  expect(chunks.at(-1)).toMatchObject({
    modelVersion: 'gemini-pro',
    usageMetadata: { totalTokenCount: expect.any(Number) },
  });

  const list = await post(`${path}:streamGenerateContent`, body);
  expect(list.json.map(({ candidates }: typeof list.json) => candidates[0].content.role)).toContain('model');

  const contents = [
    ...body.contents,
    { role: 'model', parts: parts.slice(-1) },
    { role: 'user', parts: [{ functionResponse: { name: 'write_file', response: { output: result } } }] },
  ];
  const { json } = await post(`${path}:generateContent`, { ...body, contents });
  expect(json.candidates[0].content).toEqual({
    role: 'model',
    parts: [{ text: `The tool answered: ${JSON.stringify({ output: result })}` }],
  });
  const responseJsonSchema = {
    type: 'OBJECT',
    properties: { score: { type: 'INTEGER' } },
    required: ['score'],
  };
  const router = {
    contents: body.contents,
    generationConfig: { responseMimeType: 'application/json', responseJsonSchema },
  };
  const scored = await post(`${path}:generateContent`, router);
  expect(JSON.parse(scored.json.candidates[0].content.parts[0].text)).toEqual({ score: 10 });
  expect((await post(`${path}:countTokens`, router)).json).toEqual({ totalTokens: expect.any(Number) });
});

test('lists models in the format of each API', async () => {
  const list = async (path: string, headers = {}) => (await fetch(server.url + path, { headers })).json();
  expect(await list('/v1/models')).toMatchObject({
    object: 'list',
    data: [{ id: 'svc-scripted', object: 'model' }],
  });
  expect(await list('/v1/models', { 'anthropic-version': '2023-06-01' })).toMatchObject({
    data: [{ type: 'model', id: 'svc-scripted' }],
    has_more: false,
  });
  expect(await list('/v1beta/models')).toMatchObject({ models: [{ name: 'models/svc-scripted' }] });
});

test('rejects malformed requests in the format of the API, and records them without keys', async () => {
  const secret = { authorization: 'Bearer very-secret', 'x-api-key': 'very-secret' };
  expect(await post('/v1/chat/completions', { model: 'm' }, secret)).toMatchObject({
    status: 400,
    json: { error: { type: 'invalid_request_error' } },
  });
  expect((await post('/v1/messages', {}, secret)).json).toMatchObject({ type: 'error' });
  expect((await post('/v1beta/models/m:generateContent?key=very-secret', [], secret)).json.error.code).toBe(
    400,
  );
  expect((await post('/v1/embeddings', {}, secret)).status).toBe(404);
  await post(
    '/v1/chat/completions',
    { model: 'm', messages: [{ role: 'user', content: 'a title' }] },
    secret,
  );
  expect(server.requests.map(({ shape, status }) => [shape, status])).toEqual([
    ['openai-chat', 400],
    ['anthropic', 400],
    ['gemini', 400],
    [null, 404],
    ['openai-chat', 200],
  ]);
  expect(server.requests.at(-1)).toMatchObject({ model: 'm', tools: 0, stream: false, answer: 'text' });
  expect(JSON.stringify(server.requests)).not.toContain('very-secret');
});
