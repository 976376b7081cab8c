/**
 * Serves the web UI that Vite built, from one folder. Files with a content hash in their name are cached permanently by
 * browsers; a few files with fixed names at the root are revalidated each time; and every other path gets the page itself.
 * Only names of a known form are looked up on disk, so no path can lead out of the folder.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { packageFolder } from '../base/program-files.ts';
import { problems } from '../core/problem.ts';

export const WEB_FOLDER = join(packageFolder, 'dist/web');

export const HTML = 'text/html; charset=utf-8';
/** Files at the folder's root other than the page. */
const ROOT_TYPES: Record<string, string> = {
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
};
/** Compressed copies that a page may have beside it, in the order of preference. */
const encodings = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;
const FILE_NAME = /^[\w-][\w.-]{0,199}$/;
const COMPRESSED = /\.(br|gz|deflate)$/;
/** A path segment that is not an id. */
const PAGE_WORD = /^[a-z]{1,20}$/;
const PAGE_PARTS_MAX = 4;
/** First path segments that never lead to the page. */
const NO_PAGES = new Set(['api', 'assets', 'healthz', 'metrics', 'readyz']);

export const NOT_BUILT = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>svc</title>
<h1>The web UI is not built</h1>
<p>Run <code>npm run build:web</code> in the source directory of the service, then reload this page.</p>
<p>The API and the <code>svc</code> command line work without the web UI.</p>
</html>
`;

const WRONG_HOST = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>svc: unknown host</title>
<h1>Unknown host name</h1>
<p>The service answers only at configured addresses, so that no other site can reach it through your browser.</p>
<p>If the address is correct, add it to the configuration, for example
<code>web.rp_origin = "https://svc.example"</code>, and restart the service. By default, only the address in
<code>server.listen</code> and <code>localhost</code> are accepted, with the port.</p>
</html>
`;

/** Adds the routes of the web UI. `folder`: the folder of the built UI, which need not exist. */
export async function mountPages(app: FastifyInstance, folder: string): Promise<void> {
  // The plugin's own wildcard route would serve every file below the folder, so the routes here list the allowed names.
  await app.register(fastifyStatic, { serve: false, preCompressed: true });
  const assets = join(folder, 'assets');
  const method = ['GET', 'HEAD'];
  app.route<{ Params: { name: string } }>({
    method,
    url: '/assets/:name',
    handler: (request, reply) => {
      const { name } = request.params;
      if (!FILE_NAME.test(name) || COMPRESSED.test(name)) throw problems.notFound();
      // If-Match and similar headers only make sense for changes; on a GET, they could only cause an error.
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

/** Serves the page if a browser navigates to a path that has no other handler. Otherwise, the path is not found. */
export async function servePage(
  folder: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const reads = request.method === 'GET' || request.method === 'HEAD';
  if (!reads || !isNavigation(request) || !isPagePath(request.url)) throw problems.notFound();
  return sendPage(folder, request, reply);
}

/** A plain page for a browser that used an unknown host name; null for programs, which get the usual error. */
export function wrongHostPage(request: PageRequest): { type: string; body: string } | null {
  return isNavigation(request) && isPagePath(request.url) ? { type: HTML, body: WRONG_HOST } : null;
}

/** What decides whether a request is for a page. */
type PageRequest = Pick<FastifyRequest, 'url' | 'headers'>;

function isNavigation({ headers }: PageRequest): boolean {
  return /\btext\/html\b/i.test(headers.accept ?? '');
}

/**
 * Whether a path is a page. At the root, a path with a dot is a file name. Deeper segments may contain dots, such as a
 * user's name or a changed file.
 */
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
  const accepted = String(request.headers['accept-encoding'] ?? '');
  for (const name of pageNames(request.url)) {
    const page = await readOrNull(join(folder, name));
    if (page === null) continue;
    reply.header('vary', 'accept-encoding');
    for (const [encoding, suffix] of encodings) {
      if (!new RegExp(`\\b${encoding}\\b`).test(accepted)) continue;
      const compressed = await readOrNull(join(folder, name + suffix));
      if (compressed) return send(request, reply.header('content-encoding', encoding), HTML, compressed);
    }
    return send(request, reply, HTML, page);
  }
  return reply.code(503).type(HTML).send(NOT_BUILT);
}

/** The page for a path; null if the web UI has not been built. */
export async function readPage(folder: string, url: string): Promise<Buffer | null> {
  for (const name of pageNames(url)) {
    const page = await readOrNull(join(folder, name));
    if (page !== null) return page;
  }
  return null;
}

/**
 * Every page shows the same app. The file that is named like the path, or like its beginning, also names the scripts of that
 * screen. For `/agents/agt_1/output`, it is `pages/agents.any.output.html`.
 */
function pageNames(url: string): string[] {
  const parts = url.split('?', 1)[0]!.split('/').filter(Boolean).slice(0, PAGE_PARTS_MAX);
  const words = parts.length === 0 ? ['home'] : parts.map((part) => (PAGE_WORD.test(part) ? part : 'any'));
  const names = words.map((_, i) => `pages/${words.slice(0, i + 1).join('.')}.html`);
  return [...names.reverse(), 'index.html'];
}

/**
 * The ETag depends on the content: packages set the same time on every file, and a page that names other scripts may
 * have the same length.
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
