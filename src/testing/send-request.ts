/** Sends HTTP requests, also as from another address. */
import { request } from 'node:http';

export interface HttpAnswer {
  status: number;
  error: string;
  text: string;
  took_ms: number;
}

interface RequestInput {
  /** The client's address. The service must expect a proxy in front (`server.behind_proxy`), because this machine counts as one. */
  from?: string;
  method?: string;
  body?: unknown;
  token?: string;
  headers?: Record<string, string>;
}

/** Uses its own connection. `took_ms`: from the last byte of the request to the last one of the response. */
export function sendRequest(url: string, path: string, input: RequestInput = {}): Promise<HttpAnswer> {
  const { from, method = 'POST', body, token, headers = {} } = input;
  const { hostname, port } = new URL(url);
  const text = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const outgoing = request({
      hostname,
      port,
      path,
      method,
      agent: false,
      headers: {
        ...(text !== null && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
        }),
        ...(from !== undefined && { 'x-forwarded-for': from }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...headers,
      },
    });
    let sent_ms = 0;
    outgoing.on('error', reject);
    outgoing.on('response', async (response) => {
      let answer = '';
      response.setEncoding('utf8');
      for await (const part of response) answer += part;
      resolve({
        status: response.statusCode ?? 0,
        error: errorOf(answer),
        text: answer,
        took_ms: performance.now() - sent_ms,
      });
    });
    outgoing.on('socket', (socket) => {
      const send = () => {
        sent_ms = performance.now();
        outgoing.end(text ?? undefined);
      };
      if (socket.connecting) socket.once('connect', send);
      else send();
    });
  });
}

function errorOf(text: string): string {
  try {
    return String((JSON.parse(text) as { error?: unknown }).error ?? '');
  } catch {
    return text.slice(0, 100);
  }
}
