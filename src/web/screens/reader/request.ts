/** What a filled-in form asks of the API. Pure. */
import type { Operation } from './description.ts';

export interface Filled {
  /** By parameter; empty ones are not sent. */
  values: Record<string, string>;
  body: string;
}

export interface Request {
  path: string;
  headers: Record<string, string>;
  body: string | undefined;
}

/** Throws where a path is incomplete, or the body no JSON. */
export function requestOf({ method, path, spec }: Operation, { values, body }: Filled): Request {
  const query = new URLSearchParams();
  const headers: Record<string, string> = {};
  let filled = path;
  for (const { name, in: place } of spec.parameters) {
    const value = values[name] ?? '';
    if (place === 'path') {
      if (value === '') throw new Error(`${name} is required`);
      filled = filled
        .replace(`{${name}}`, encodeURIComponent(value))
        .replace(`{${name}*}`, encodeURIComponent(value));
    } else if (value !== '') {
      if (place === 'query') query.set(name, value);
      else headers[name] = value;
    }
  }
  const text = method === 'GET' ? '' : body.trim();
  if (text !== '') {
    JSON.parse(text);
    headers['content-type'] = 'application/json';
  }
  const search = query.toString();
  return { path: search ? `${filled}?${search}` : filled, headers, body: text || undefined };
}

/** The same as a line for a shell. The token comes from its environment, so that it is in no history. */
export function curlOf(origin: string, method: string, { path, headers, body }: Request): string {
  const words = ['curl', '-N'];
  if (method !== 'GET') words.push('-X', method);
  words.push('-H', '"Authorization: Bearer $SVC_TOKEN"');
  for (const [name, value] of Object.entries(headers)) words.push('-H', quoted(`${name}: ${value}`));
  if (body !== undefined) words.push('--data-raw', quoted(body));
  words.push(quoted(origin + path));
  return words.join(' ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
