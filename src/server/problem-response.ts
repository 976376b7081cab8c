/** The headers of every response, and the form of errors, for all parts of the plane that answer HTTP requests. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { INTERNAL_ERROR, statusOf } from '../api/status.ts';
import { newSecret } from '../base/ids.ts';
import type { Problem } from '../core/problem.ts';
import { dropRest } from './body.ts';
import { limits } from './limits.ts';
import { wrongHostPage } from './pages.ts';

/** The content security policy lets a page load from this origin only. */
const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'cache-control': 'no-store',
} as const;

/** Headers of every response of a listener. */
export function commonHeaders(options: {
  tls: unknown;
  public_origin: string | null;
}): Readonly<Record<string, string>> {
  // HSTS must not apply to `localhost`, which other programs share.
  const strict = options.tls !== null && options.public_origin?.startsWith('https:') === true;
  return strict ? { ...SECURITY_HEADERS, 'strict-transport-security': 'max-age=31536000' } : SECURITY_HEADERS;
}

/** A source of request ids, which differ from those of every other source. */
export function requestIds(): () => string {
  const boot_id = newSecret(6);
  let requests = 0;
  return () => `req_${boot_id}${(requests++).toString(36)}`;
}

/** A proxy in front may parse such a request differently, so nothing more is accepted on the same connection. */
const AMBIGUOUS_HOST_CODES: ReadonlySet<string> = new Set([
  'missing_host',
  'duplicate_host',
  'invalid_target',
]);

/** `Retry-After` of a 429 that says nothing else. */
const RETRY_AFTER_S = 1;

/** What a response says about a problem; undefined: about an internal error. */
export function errorResponse(
  problem: Problem | undefined,
  request: { url: string; headers: IncomingMessage['headers'] },
): { status: number; headers: Record<string, string>; type: string; body: string } {
  const page = problem?.kind === 'misdirected' ? wrongHostPage(request) : null;
  return {
    status: problem ? statusOf[problem.kind] : INTERNAL_ERROR.status,
    headers: errorHeaders(problem),
    type: page?.type ?? 'application/json; charset=utf-8',
    body: page?.body ?? JSON.stringify({ error: problem?.message ?? INTERNAL_ERROR.message }),
  };
}

function errorHeaders(problem: Problem | undefined): Record<string, string> {
  const headers: Record<string, string> = { 'x-error-code': problem?.code ?? INTERNAL_ERROR.code };
  if (problem === undefined) return headers;
  if (problem.kind === 'unauthenticated') headers['www-authenticate'] = 'Bearer';
  if (AMBIGUOUS_HOST_CODES.has(problem.code)) headers.connection = 'close';
  if (problem.pending !== undefined) headers['x-pending'] = problem.pending;
  if (problem.tries_left !== undefined) headers['x-tries-left'] = String(problem.tries_left);
  const retry_after_s =
    problem.retry_after_s ?? (problem.kind === 'rate_limited' ? RETRY_AFTER_S : undefined);
  if (retry_after_s !== undefined) headers['retry-after'] = String(retry_after_s);
  const allowed = pathsHeader(problem.allowed_paths ?? []);
  if (allowed !== '') headers['x-allowed-paths'] = allowed;
  const refused = pathsHeader(problem.refused_path === undefined ? [] : [problem.refused_path]);
  if (refused !== '') headers['x-refused-path'] = refused;
  return headers;
}

/**
 * Joins paths with commas, up to the length limit. Percent-encodes everything but slashes and plain characters; what is not valid
 * Unicode becomes U+FFFD.
 */
function pathsHeader(paths: readonly string[]): string {
  const encoded = paths.map((path) => path.toWellFormed().split('/').map(encodeURIComponent).join('/'));
  return encoded.reduce((header, path) => {
    const longer = header === '' ? path : `${header}, ${path}`;
    return longer.length > limits.allowed_paths_chars_max ? header : longer;
  }, '');
}

/** A request that is answered without Fastify. */
export interface PlainRequest {
  request: IncomingMessage;
  response: ServerResponse;
  request_id: string;
}

/** Answers a request with a problem; undefined: an internal error. `common`: the headers of every response. The response must not have begun. */
export function sendProblem(
  { request, response, request_id }: PlainRequest,
  problem: Problem | undefined,
  common: Readonly<Record<string, string>>,
): void {
  const { url = '/', headers } = request;
  const error = errorResponse(problem, { url, headers });
  dropRest(request);
  response.writeHead(error.status, {
    ...common,
    'x-request-id': request_id,
    ...error.headers,
    'content-type': error.type,
    'content-length': Buffer.byteLength(error.body),
  });
  response.end(error.body);
}
