/** Content blocks in the form that a message shows: text that grows by chunks, images, links, embedded files. */
import { asNumber, asRecord, asString, type Fields, truncateText } from '../json.ts';
import { type Raw, shortOrNull, toRaw } from './bounded.ts';
import { bounds } from './bounds.ts';

export type Part =
  | { readonly type: 'text'; readonly text: string }
  /** `data`: base64; null if it is too large, or only its address is known. */
  | {
      readonly type: 'image' | 'audio';
      readonly mime_type: string;
      readonly data: string | null;
      readonly uri: string | null;
    }
  | {
      readonly type: 'link';
      readonly uri: string;
      readonly name: string;
      readonly title: string | null;
      readonly mime_type: string | null;
      readonly size: number | null;
    }
  /** `text` is null for a file that is not text. */
  | {
      readonly type: 'resource';
      readonly uri: string;
      readonly mime_type: string | null;
      readonly text: string | null;
    }
  | { readonly type: 'unknown'; readonly raw: Raw };

export interface Body {
  readonly parts: readonly Part[];
  /** The number of characters in the parts. */
  readonly chars: number;
  /** The number of characters of text among them. */
  readonly text_chars: number;
  /** The number of omitted characters, because the message is too long. */
  readonly omitted_chars: number;
}

export const emptyBody: Body = { parts: [], chars: 0, text_chars: 0, omitted_chars: 0 };

export function toBody(blocks: unknown): Body {
  const list: unknown[] = Array.isArray(blocks) ? blocks : [];
  return list.reduce<Body>(appendBlock, emptyBody);
}

/** Appends a content block. Text continues the previous text. */
export function appendBlock(body: Body, block: unknown): Body {
  const part = toPart(block);
  const chars = countChars(part);
  if (part.type === 'text') return withText(body, part.text);
  if (body.parts.length >= bounds.parts || body.chars + chars > bounds.body_chars) {
    return { ...body, omitted_chars: body.omitted_chars + chars };
  }
  return { ...body, parts: [...body.parts, part], chars: body.chars + chars };
}

function withText(body: Body, added: string): Body {
  const last = body.parts.at(-1);
  const continues = last?.type === 'text';
  // Once something was omitted, later text would be in the wrong place.
  const has_room = body.omitted_chars === 0 && (continues || body.parts.length < bounds.parts);
  const remaining_chars = has_room ? Math.max(0, bounds.text_chars - body.text_chars) : 0;
  const text = truncateText(added, remaining_chars);
  const omitted_chars = body.omitted_chars + added.length - text.length;
  if (text === '') return omitted_chars === body.omitted_chars ? body : { ...body, omitted_chars };
  const parts: Part[] = continues
    ? [...body.parts.slice(0, -1), { type: 'text', text: last.text + text }]
    : [...body.parts, { type: 'text', text }];
  const { length } = text;
  return { parts, chars: body.chars + length, text_chars: body.text_chars + length, omitted_chars };
}

/** All text of the message. */
export function bodyText({ parts }: Body): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

export function toPart(block: unknown): Part {
  const { type, text, data, uri, name, title, mimeType, size, resource } = asRecord(block);
  const [address, mime_type] = [shortOrNull(uri), shortOrNull(mimeType)];
  if (type === 'text' && typeof text === 'string') return { type, text };
  if ((type === 'image' || type === 'audio') && mime_type !== null) {
    return { type, mime_type, data: readMedia(data), uri: address };
  }
  if (type === 'resource_link' && address !== null) {
    const label = { name: shortOrNull(name) ?? address, title: shortOrNull(title) };
    return { type: 'link', uri: address, ...label, mime_type, size: asNumber(size) };
  }
  if (type === 'resource') return readResource(asRecord(resource)) ?? { type: 'unknown', raw: toRaw(block) };
  return { type: 'unknown', raw: toRaw(block) };
}

function readResource({ uri, mimeType, text }: Fields): Part | null {
  const address = shortOrNull(uri);
  if (address === null) return null;
  const content = typeof text === 'string' ? truncateText(text, bounds.text_chars) : null;
  return { type: 'resource', uri: address, mime_type: shortOrNull(mimeType), text: content };
}

function readMedia(data: unknown): string | null {
  const base64 = asString(data);
  return base64 !== null && base64 !== '' && base64.length <= bounds.media_chars ? base64 : null;
}

export function countChars(part: Part): number {
  switch (part.type) {
    case 'text':
      return part.text.length;
    case 'image':
    case 'audio':
      return part.data?.length ?? 0;
    case 'link':
      return part.uri.length + part.name.length;
    case 'resource':
      return part.uri.length + (part.text?.length ?? 0);
    case 'unknown':
      return part.raw.chars;
  }
}
