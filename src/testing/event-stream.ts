/** A fake service whose event streams a test scripts, for tests of clients. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Agent } from '../features/agents/rules.ts';

/** Opens the server. The connection with index n calls `pieces[n]`, which sends frames and ends or breaks the connection. */
export async function openStream(agent: Agent, pieces: ((response: ServerResponse) => void)[]) {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    if (request.url!.includes('/events')) {
      requests.push(request);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('retry: 1000\n\n');
      (pieces[requests.length - 1] ?? ((last) => last.end()))(response);
      return;
    }
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(request.url!.startsWith('/api/agents?') ? { items: [agent] } : agent));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { env: { SVC_URL: url, SVC_TOKEN: 't' }, requests, close };
}

export function frame(seq: number, fields: Record<string, unknown>): string {
  const data = { agent_id: 'agt_1', session_id: 'ses_1', seq, ts: 1, ...fields };
  return `id: ${seq}\nevent: ${fields.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

export const output = (seq: number, data: string, more = {}) =>
  frame(seq, { type: 'output', stream: 'stdout', data, ...more });
export const status = (seq: number, to: string) =>
  frame(seq, { type: 'status', status: to, previous_status: 'running' });
