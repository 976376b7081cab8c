/**
 * Reads a request's JSON body: limited in bytes and depth, JSON only, never compressed. After a rejection, the rest
 * of the body is read and discarded for a short time so that the client sees the response. Then the connection is
 * closed.
 */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { limits as sharedLimits } from '../base/limits.ts';
import { invalid, Problem, problems } from '../core/problem.ts';
import { limits } from './limits.ts';

const JSON_TYPE = /^application\/json[\t ]*(;[\t ]*charset="?utf-8"?[\t ]*)?$/i;

/** The raw body, or null if there is none. */
export async function readBody(request: IncomingMessage, bytes_max: number): Promise<Buffer | null> {
  const { headers } = request;
  const length = headers['content-length'];
  if (headers['transfer-encoding'] === undefined && (length === undefined || Number(length) === 0)) {
    if (headers['content-type'] !== undefined && !JSON_TYPE.test(headers['content-type'])) {
      throw problems.unsupportedMediaType();
    }
    return null;
  }
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') throw encodingRefused();
  if (!JSON_TYPE.test(headers['content-type'] ?? '')) throw problems.unsupportedMediaType();
  if (Number(length) > bytes_max) throw problems.bodyTooLarge();
  const body = await collect(request, bytes_max);
  return body.length === 0 ? null : body;
}

function collect(request: IncomingMessage, bytes_max: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const finish = (settle: () => void) => {
      request.off('data', onData).off('end', onEnd).off('error', onClose).off('close', onClose);
      settle();
    };
    const onData = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > bytes_max) finish(() => reject(problems.bodyTooLarge()));
      else chunks.push(chunk);
    };
    const onEnd = () =>
      finish(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, bytes)));
    const onClose = () => finish(() => reject(invalid('request body is incomplete', 'incomplete_body')));
    request.on('data', onData).on('end', onEnd).on('error', onClose).on('close', onClose);
    // The client disconnected while the token was being checked, and no event follows.
    if (request.destroyed) onClose();
  });
}

/** Parses a body's text. */
export function parseBody(body: Buffer): unknown {
  if (!isUtf8(body)) throw problems.bodyNotJson();
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    throw problems.bodyNotJson();
  }
  checkShape(value);
  return value;
}

/** Rejects values that are nested too deeply, and keys that JavaScript treats specially. */
function checkShape(value: unknown): void {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    const next: unknown[] = [];
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue;
      if (depth === sharedLimits.json_depth_max) {
        throw invalid(
          `request body is nested more than ${sharedLimits.json_depth_max} levels deep`,
          'body_too_deep',
        );
      }
      if (Object.hasOwn(item, '__proto__')) throw invalid('__proto__ is not allowed', 'forbidden_key');
      for (const child of Object.values(item))
        if (typeof child === 'object' && child !== null) next.push(child);
    }
    level = next;
  }
}

/** Limits how many more bytes of a rejected body are read, and for how long. */
export function dropRest(request: IncomingMessage): void {
  if (request.complete) return;
  const { socket } = request;
  const cut = () => socket.destroy();
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > limits.refused_body_bytes_max) cut();
  });
  request.resume();
  const timer = setTimeout(cut, limits.refused_body_ms);
  const done = () => {
    clearTimeout(timer);
    request.off('end', done);
    socket.off('close', done);
  };
  request.on('end', done);
  socket.on('close', done);
}

function encodingRefused(): Problem {
  return new Problem(
    'unsupported_media_type',
    'content_encoding_refused',
    'content encoding is not supported',
  );
}
