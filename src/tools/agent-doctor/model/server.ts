/**
 * The scripted model: a server on loopback that speaks the model APIs of coding agents, needs no key and no network,
 * and follows the script. It records requests but no headers, so it records no keys.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { limits } from '../../limits.ts';
import { SCRIPTED_MODEL } from './agent-settings.ts';
import { anthropic } from './anthropic.ts';
import type { Answer, Conversation } from './conversation.ts';
import { gemini } from './gemini.ts';
import { openaiChat } from './openai-chat.ts';
import { openaiResponses } from './openai-responses.ts';
import { Script } from './script.ts';
import type { ModelApi, StreamEvent } from './shape.ts';

export interface ModelRequest {
  method: string;
  /** Without its query, which may contain a key. */
  path: string;
  /** Null: not a conversation. */
  shape: string | null;
  status: number;
  model?: string;
  stream?: boolean;
  tools?: number;
  /** `text`, or the name of the called tool. */
  answer?: string;
  /** Why the request was rejected. */
  error?: string;
}

export interface ModelServer {
  /** `http://127.0.0.1:<port>`. */
  url: string;
  /** The latest requests, oldest first. */
  requests: readonly ModelRequest[];
  close(): Promise<void>;
}

const routes: [RegExp, ModelApi][] = [
  [/\/chat\/completions$/, openaiChat],
  [/\/responses$/, openaiResponses],
  [/\/messages$/, anthropic],
  [/\/models\/[^/]+:(generate|streamGenerate)Content$/, gemini],
];

/** `folder`: where the tools that it calls write their files. */
export async function openModelServer(folder: string): Promise<ModelServer> {
  const script = new Script(folder);
  const requests: ModelRequest[] = [];
  const server = createServer((request, response) => {
    void serve(script, request, response).then(
      (noted) => {
        requests.push(noted);
        if (requests.length > limits.doctor_model_requests_max) requests.shift();
      },
      // The agent disconnected, so no answer is needed.
      () => response.destroy(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function serve(
  script: Script,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<ModelRequest> {
  const { method = '' } = request;
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
  const noted = { method, path: pathname, shape: null };
  const shape = method === 'POST' ? routes.find(([path]) => path.test(pathname))?.[1] : undefined;
  if (!shape) {
    const [status, body] = aside(method, pathname, request, await bodyOf(request));
    sendJson(response, status, body);
    return { ...noted, status };
  }
  let conversation: Conversation;
  try {
    conversation = shape.read(JSON.parse(await bodyOf(request)), pathname);
  } catch (error) {
    const message = error instanceof z.ZodError ? z.prettifyError(error) : String((error as Error).message);
    sendJson(response, 400, shape.error(message));
    return { ...noted, shape: shape.name, status: 400, error: message };
  }
  const answer = script.answer(conversation);
  if (!conversation.stream) sendJson(response, 200, shape.complete(answer, conversation));
  else if (shape === gemini && searchParams.get('alt') !== 'sse') {
    sendJson(
      response,
      200,
      shape.events(answer, conversation).map(({ data }) => data),
    );
  } else sendEvents(response, shape.events(answer, conversation));
  return { ...noted, shape: shape.name, status: 200, ...summary(conversation, answer) };
}

function summary({ model, stream, tools }: Conversation, { call }: Answer) {
  return { model, stream, tools: tools.length, answer: call?.name ?? 'text' };
}

/** Requests other than conversations: the list of models, the length of a text, health checks. */
function aside(method: string, path: string, request: IncomingMessage, body: string): [number, unknown] {
  const tokens = Math.ceil(body.length / 4);
  if (path.endsWith('/messages/count_tokens')) return [200, { input_tokens: tokens }];
  if (path.endsWith(':countTokens')) return [200, { totalTokens: tokens }];
  if (method === 'GET' && path.endsWith('/models')) return [200, modelList(path, request)];
  if (path === '/') return [200, {}];
  return [404, { error: { message: `${method} ${path} is not supported`, type: 'not_found_error' } }];
}

function modelList(path: string, { headers }: IncomingMessage): unknown {
  const id = SCRIPTED_MODEL;
  if (path.startsWith('/v1beta') || headers['x-goog-api-key'] !== undefined) {
    const supportedGenerationMethods = ['generateContent', 'countTokens'];
    return { models: [{ name: `models/${id}`, displayName: id, supportedGenerationMethods }] };
  }
  const created_at = '2026-01-01T00:00:00Z';
  if (headers['anthropic-version'] !== undefined) {
    const model = { type: 'model', id, display_name: id, created_at };
    return { data: [model], has_more: false, first_id: id, last_id: id };
  }
  return {
    object: 'list',
    data: [{ id, object: 'model', created: Date.parse(created_at) / 1000, owned_by: 'svc' }],
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > limits.doctor_model_body_bytes_max) throw new Error('the request is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function sendEvents(response: ServerResponse, events: readonly StreamEvent[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  for (const { event, data } of events) {
    const text = typeof data === 'string' ? data : JSON.stringify(data);
    response.write(`${event === undefined ? '' : `event: ${event}\n`}data: ${text}\n\n`);
  }
  response.end();
}
