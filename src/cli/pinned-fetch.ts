/** `fetch` for the plane of this machine, whose certificate is for the name that people use, not for its address. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request as send } from 'node:https';
import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';

/** A `fetch` that accepts this certificate (PEM) for any host, and no other. It follows no redirects. */
export function pinnedFetch(certificate: string): typeof fetch {
  const agent = new Agent({
    keepAlive: true,
    ca: certificate,
    // Trusts the certificate itself, whoever has issued it.
    allowPartialTrustChain: true,
    checkServerIdentity: () => undefined,
  });
  return async (input, init) => {
    const request = new Request(input, init);
    const { url, method, headers, signal } = request;
    const body = Buffer.from(await request.arrayBuffer());
    const outgoing = send(url, { method, agent, signal, headers: Object.fromEntries(headers) });
    // After the response has begun, its body reports errors too.
    outgoing.on('error', () => {});
    outgoing.end(body.length > 0 ? body : undefined);
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    return toResponse(incoming);
  };
}

function toResponse(incoming: IncomingMessage): Response {
  const { statusCode: status = 0, headersDistinct } = incoming;
  const headers = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  const has_body = ![204, 205, 304].includes(status);
  if (!has_body) incoming.resume();
  return new Response(has_body ? (Readable.toWeb(incoming) as ReadableStream as never) : null, {
    status,
    headers,
  });
}
