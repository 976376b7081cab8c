/**
 * The API description for people. `/docs` is a public page without data; it asks for a token and then reads
 * `/api/openapi.json`. `/api/openapi/docs` is the same page with the description embedded, so it requires a token.
 * All files come from `docs/` next to this file, and nothing from another host.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { openapi } from '../api/openapi.ts';
import type { Handlers } from './call.ts';

const TYPES = {
  'docs.css': 'text/css; charset=utf-8',
  'docs.js': 'text/javascript; charset=utf-8',
  'dom.js': 'text/javascript; charset=utf-8',
  'schema.js': 'text/javascript; charset=utf-8',
  'operation.js': 'text/javascript; charset=utf-8',
} as const;
const HTML = 'text/html; charset=utf-8';

function read(name: string): Buffer {
  return readFileSync(new URL(`./docs/${name}`, import.meta.url));
}

export function mountDocs(app: FastifyInstance): void {
  serve(app, '/docs', HTML, read('docs.html'));
  for (const [name, type] of Object.entries(TYPES)) serve(app, `/docs/${name}`, type, read(name));
}

function serve(app: FastifyInstance, url: string, type: string, content: Buffer): void {
  const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
  app.route({
    method: ['GET', 'HEAD'],
    url,
    handler: (request, reply) => {
      reply.headers({ 'cache-control': 'no-cache', etag });
      if (request.headers['if-none-match'] === etag) return reply.code(304).send();
      return reply.type(type).send(content);
    },
  });
}

/**
 * Handlers of the description, for `mountRoutes`. The description is built at the first request, because building it
 * takes a tenth of the start-up time.
 */
export function metaHandlers(): Pick<Handlers, 'getOpenapi' | 'getDocs'> {
  const html = read('docs.html').toString('utf8');
  let description: ReturnType<typeof openapi> | undefined;
  let page: Buffer | undefined;
  const described = () => {
    description ??= openapi();
    return description;
  };
  return {
    getOpenapi: described,
    getDocs: (call) => {
      page ??= Buffer.from(withDescription(html, described()));
      const response = call.hijack();
      response.writeHead(200, { 'content-type': HTML, 'content-length': page.length });
      response.end(page);
      return undefined;
    },
  };
}

/**
 * A data block, not a script: the policy against inline scripts allows it, and its text is escaped so that it cannot
 * end the block.
 */
function withDescription(html: string, description: unknown): string {
  const json = JSON.stringify(description).replaceAll('<', '\\u003c');
  return html.replace(
    '</body>',
    () => `  <script type="application/json" id="description">${json}</script>\n  </body>`,
  );
}
