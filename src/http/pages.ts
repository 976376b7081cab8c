/**
 * The web UI as Vite built it, from one folder: files whose names are hashes of what they hold, kept for ever by whoever
 * has them; a few of fixed name at its root, asked for anew each time; and the page itself, for every path that is no
 * file and nothing else's. Only names of a known form reach the disk, so no path leads out of the folder.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { problems } from '../domain/problem.ts';

/** Beside the compiled program; for the sources, where the build puts it. */
export const WEB_FOLDER = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../../dist/web' : '../web', import.meta.url),
);

const HTML = 'text/html; charset=utf-8';
/** What lies at the folder's root beside the page. */
const ROOT_TYPES: Record<string, string> = {
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
};
const FILE_NAME = /^[\w-][\w.-]{0,199}$/;
const COMPRESSED = /\.(br|gz|deflate)$/;
/** A part of a path that is no id. */
const PAGE_WORD = /^[a-z]{1,20}$/;
const PAGE_PARTS_MAX = 4;
/** First parts of paths that are no pages. */
const NO_PAGES = new Set(['api', 'assets', 'docs', 'healthz', 'metrics', 'readyz']);

const NOT_BUILT = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>svc</title>
<h1>The web UI is not built</h1>
<p>Run <code>npm run build:web</code> where the service comes from, then load this page again.</p>
<p>The service itself runs: <a href="/docs">its API</a> and <code>svc</code> on the command line work without it.</p>
</html>
`;

const WRONG_HOST = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>svc: unknown host</title>
<h1>This service is not known by that name</h1>
<p>It answers only to addresses that it was told of, so that no other site can reach it through your browser.</p>
<p>If the address is right, name it in the configuration, for example
<code>web.rp_origin = "https://svc.example"</code>, and start the service again. Without it, only the address in
<code>server.listen</code> and <code>localhost</code> count, with the port.</p>
</html>
`;

export async function mountPages(app: FastifyInstance, folder: string): Promise<void> {
  // Its own routes would serve whatever lies below a folder; these say which names there are.
  await app.register(fastifyStatic, { serve: false, preCompressed: true });
  const assets = join(folder, 'assets');
  const method = ['GET', 'HEAD'];
  app.route<{ Params: { name: string } }>({
    method,
    url: '/assets/:name',
    handler: (request, reply) => {
      const { name } = request.params;
      if (!FILE_NAME.test(name) || COMPRESSED.test(name)) throw problems.notFound();
      // A condition that only changes need: here it could but refuse.
      delete request.raw.headers['if-match'];
      delete request.raw.headers['if-unmodified-since'];
      return reply.sendFile(name, assets, { acceptRanges: false, immutable: true, maxAge: '1y' });
    },
  });
  app.route<{ Params: { name: string } }>({
    method,
    url: '/:name',
    handler: async (request, reply) => {
      const { name } = request.params;
      const type = ROOT_TYPES[extname(name)];
      if (!FILE_NAME.test(name) || type === undefined) return servePage(folder, request, reply);
      return send(request, reply, type, await readOrNull(join(folder, name)));
    },
  });
  app.route({ method, url: '/', handler: (request, reply) => sendPage(folder, request, reply) });
}

/** The page, where a person went to a path that nothing else has; else the path is not found. */
export async function servePage(
  folder: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const reads = request.method === 'GET' || request.method === 'HEAD';
  if (!reads || !isNavigation(request) || !isPagePath(request.url)) throw problems.notFound();
  return sendPage(folder, request, reply);
}

/** To a person who came by a name that is not ours; null for programs, which get the error in its usual form. */
export function wrongHostPage(request: FastifyRequest): { type: string; body: string } | null {
  return isNavigation(request) && isPagePath(request.url) ? { type: HTML, body: WRONG_HOST } : null;
}

function isNavigation({ headers }: FastifyRequest): boolean {
  return /\btext\/html\b/i.test(headers.accept ?? '');
}

/** A file's name at the root is no page; below it a dot is part of a name, such as a user's or a changed file's. */
function isPagePath(url: string): boolean {
  let path: string;
  try {
    path = decodeURIComponent(url.split('?', 1)[0]!);
  } catch {
    return false;
  }
  const [first = '', ...rest] = path.slice(1).split('/');
  if (NO_PAGES.has(first.toLowerCase()) || /[\0-\x1f\\]/.test(path)) return false;
  if (path === '/') return true;
  return first !== '' && !first.includes('.') && !rest.some((part) => part === '.' || part === '..');
}

async function sendPage(folder: string, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  for (const name of pageNames(request.url)) {
    const page = await readOrNull(join(folder, name));
    if (page !== null) return send(request, reply, HTML, page);
  }
  return reply.code(503).type(HTML).send(NOT_BUILT);
}

/**
 * The page is the same everywhere; the one named like the path, or like its beginning, also names the scripts of that
 * screen. `/agents/agt_1/output` is `pages/agents.any.output.html`.
 */
function pageNames(url: string): string[] {
  const parts = url.split('?', 1)[0]!.split('/').filter(Boolean).slice(0, PAGE_PARTS_MAX);
  const words = parts.length === 0 ? ['home'] : parts.map((part) => (PAGE_WORD.test(part) ? part : 'any'));
  const names = words.map((_, i) => `pages/${words.slice(0, i + 1).join('.')}.html`);
  return [...names.reverse(), 'index.html'];
}

/**
 * The tag is made of what the file holds: packages give every file the same time, and a page that names other files may
 * well have the same length.
 */
function send(
  request: FastifyRequest,
  reply: FastifyReply,
  type: string,
  content: Buffer | null,
): FastifyReply {
  if (content === null) throw problems.notFound();
  const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
  reply.headers({ 'cache-control': 'no-cache', etag });
  const known = request.headers['if-none-match']?.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  if (known?.includes(etag) || known?.includes('*')) return reply.code(304).send();
  return reply.type(type).send(content);
}

async function readOrNull(path: string): Promise<Buffer | null> {
  return readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'EISDIR') return null;
    throw error;
  });
}
