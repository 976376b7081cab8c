/** Turns a filled-in form into a request. Pure. */
import type { Operation } from './description.ts';

export interface Filled {
  /** By parameter name; empty values are not sent. */
  values: Record<string, string>;
  body: string;
}

export interface Request {
  path: string;
  headers: Record<string, string>;
  body: string | undefined;
}

/** Throws if a path parameter is missing or the body is not JSON. */
export function buildRequest({ method, path, spec }: Operation, { values, body }: Filled): Request {
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

/** The request as a shell command. It reads the token from the environment, to keep it out of the shell history. */
export function formatCurl(origin: string, method: string, { path, headers, body }: Request): string {
  const args = ['curl', '-N'];
  if (method !== 'GET') args.push('-X', method);
  args.push('-H', '"Authorization: Bearer $SVC_TOKEN"');
  for (const [name, value] of Object.entries(headers)) args.push('-H', quoted(`${name}: ${value}`));
  if (body !== undefined) args.push('--data-raw', quoted(body));
  args.push(quoted(origin + path));
  return args.join(' ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
