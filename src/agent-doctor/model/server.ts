/**
 * The scripted model: a server on loopback that speaks the APIs that coding agents know, needs no key and no network, and
 * follows the script. It notes what it was asked, and never a header, so no key.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { limits } from '../../base/limits.ts';
import { anthropic } from './anthropic.ts';
import type { Answer, Conversation } from './conversation.ts';
import { gemini } from './gemini.ts';
import { openaiChat } from './openai-chat.ts';
import { openaiResponses } from './openai-responses.ts';
import { Script } from './script.ts';
import type { Shape, StreamEvent } from './shape.ts';

export const SCRIPTED_MODEL = 'svc-scripted';

export interface ModelRequest {
  method: string;
  /** Without its query, which can hold a key. */
  path: string;
  /** Null: no conversation. */
  shape: string | null;
  status: number;
  model?: string;
  stream?: boolean;
  tools?: number;
  /** `text`, or the tool that was called. */
  answer?: string;
  /** Why it was refused. */
  error?: string;
}

export interface ModelServer {
  /** `http://127.0.0.1:<port>`. */
  url: string;
  /** The latest, oldest first. */
  requests: readonly ModelRequest[];
  close(): Promise<void>;
}

const routes: [RegExp, Shape][] = [
  [/\/chat\/completions$/, openaiChat],
  [/\/responses$/, openaiResponses],
  [/\/messages$/, anthropic],
  [/\/models\/[^/]+:(generate|streamGenerate)Content$/, gemini],
];

/** `folder`: where the tools that it calls are told to write. */
export async function openModelServer(folder: string): Promise<ModelServer> {
  const script = new Script(folder);
  const requests: ModelRequest[] = [];
  const server = createServer((request, response) => {
    void serve(script, request, response).then(
      (noted) => {
        requests.push(noted);
        if (requests.length > limits.doctor_model_requests_max) requests.shift();
      },
      // The agent went away in the middle: nobody waits for the answer.
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
    const words = error instanceof z.ZodError ? z.prettifyError(error) : String((error as Error).message);
    sendJson(response, 400, shape.error(words));
    return { ...noted, shape: shape.name, status: 400, error: words };
  }
  const answer = script.answer(conversation);
  if (!conversation.stream) sendJson(response, 200, shape.whole(answer, conversation));
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

/** What agents ask beside conversations: which models there are, how long a text is, whether anybody is there. */
function aside(method: string, path: string, request: IncomingMessage, body: string): [number, unknown] {
  const tokens = Math.ceil(body.length / 4);
  if (path.endsWith('/messages/count_tokens')) return [200, { input_tokens: tokens }];
  if (path.endsWith(':countTokens')) return [200, { totalTokens: tokens }];
  if (method === 'GET' && path.endsWith('/models')) return [200, modelList(path, request)];
  if (path === '/') return [200, {}];
  return [404, { error: { message: `${method} ${path} is not served`, type: 'not_found_error' } }];
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
    if (bytes > limits.doctor_model_body_bytes_max) throw new Error('the request is too long');
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
