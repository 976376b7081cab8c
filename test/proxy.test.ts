/** The service behind a real nginx, configured with the block from `docs/how-to/proxy.md`. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nginx, openNginx, type TestNginx } from '../src/testing/nginx.ts';
import { TestPlane } from '../src/testing/plane.ts';

const HOST = 'svc.example.com';

/** The documented block, with another listen address and upstream, and without TLS. */
function documentedServer(socket: string, upstream: string): string {
  const page = readFileSync(join(import.meta.dirname, '../docs/how-to/proxy.md'), 'utf8');
  const block = /```nginx\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
  return block
    .replace('listen 443 ssl;', `listen unix:${socket};`)
    .replace(/^ *ssl_certificate.*\n/gm, '')
    .replace('http://127.0.0.1:8080', upstream);
}

describe.runIf(nginx !== undefined)('behind nginx', () => {
  let plane: TestPlane;
  let proxy: TestNginx;
  let socket: string;

  beforeAll(async () => {
    plane = await TestPlane.open({
      env: {
        SVC_SERVER_BEHIND_PROXY: 'true',
        SVC_WEB_RP_ORIGIN: `https://${HOST}`,
        SVC_WEB_RP_ID: HOST,
      },
    });
    const prefix = join(plane.folder, 'nginx');
    socket = join(prefix, 'listen.sock');
    proxy = await openNginx(prefix, documentedServer(socket, plane.url), socket);
  });

  afterAll(async () => {
    await proxy?.close();
    await plane?.close();
  });

  async function through(path: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
    const call = request({
      socketPath: socket,
      path,
      headers: { host: HOST, authorization: `Bearer ${plane.token}`, ...headers },
    });
    call.end();
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    return response.setEncoding('utf8');
  }

  async function text(response: IncomingMessage): Promise<string> {
    let body = '';
    for await (const chunk of response) body += chunk;
    return body;
  }

  test('the service answers requests for its public name and for no other', async () => {
    const known = await through('/api/me');
    expect([known.statusCode, JSON.parse(await text(known)).username]).toEqual([200, 'ana']);
    const page = await through('/api/me', { origin: `https://${HOST}` });
    expect(page.statusCode).toBe(200);
    page.destroy();
    const other = await through('/api/me', { host: 'evil.example.com' });
    expect([other.statusCode, JSON.parse(await text(other))]).toEqual([421, { error: 'unknown host' }]);
  });

  test('a stream delivers each line before the next is written, and can be resumed', async () => {
    const agent = await plane.agent('cat', { stdin: true });
    const response = await through(`/api/agents/${agent.id}/events`);
    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toContain('text/event-stream');
    expect(response.headers['cache-control']).toContain('no-cache');
    const chunks = response[Symbol.asyncIterator]();
    let seen = '';
    const until = async (text: string) => {
      while (!seen.includes(text)) {
        const { value, done } = await chunks.next();
        if (done) throw new Error(`the stream ended without ${text}`);
        seen += value;
      }
    };
    await until('retry: 1000');
    for (let line = 1; line <= 20; line++) {
      await plane.client.call('sendInput', {
        params: { agent_id: agent.id },
        body: { data: `line-${line}\n` },
      });
      await until(`"line-${line}\\n"`);
    }
    response.destroy();
    const again = await through(`/api/agents/${agent.id}/events`, { 'last-event-id': '1' });
    for await (const chunk of again) if (String(chunk).includes('line-20')) break;
    again.destroy();
    await plane.client.call('stopAgent', { params: { agent_id: agent.id }, body: {} });
  });

  test('metrics need root’s token behind a proxy too', async () => {
    const without = await through('/metrics', { authorization: '' });
    expect(without.statusCode).toBe(401);
    without.destroy();
    const page = await through('/metrics');
    expect(page.statusCode).toBe(200);
    page.destroy();
  });
});
