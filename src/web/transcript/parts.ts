/** Content blocks as a message shows them: text that grows by chunks, images, links, embedded files. */
import { bounds } from './bounds.ts';
import { type Fields, fieldsOf, headOf, numberOf, type Raw, rawOf, stringOf, wordOf } from './reading.ts';

export type Part =
  | { readonly type: 'text'; readonly text: string }
  /** `data`: base64; null where it is too large, or only its address is known. */
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
  /** `text` is null for a file that is none. */
  | {
      readonly type: 'resource';
      readonly uri: string;
      readonly mime_type: string | null;
      readonly text: string | null;
    }
  | { readonly type: 'unknown'; readonly raw: Raw };

export interface Body {
  readonly parts: readonly Part[];
  /** Characters that the parts hold. */
  readonly chars: number;
  /** Characters of text among them. */
  readonly text_chars: number;
  /** Characters that were left out, because it is too long. */
  readonly cut: number;
}

export const emptyBody: Body = { parts: [], chars: 0, text_chars: 0, cut: 0 };

export function bodyOf(blocks: unknown): Body {
  const list: unknown[] = Array.isArray(blocks) ? blocks : [];
  return list.reduce<Body>(appended, emptyBody);
}

/** With one more content block; text goes on where text was last. */
export function appended(body: Body, block: unknown): Body {
  const part = partOf(block);
  const chars = charsOf(part);
  if (part.type === 'text') return withText(body, part.text);
  if (body.parts.length >= bounds.parts || body.chars + chars > bounds.body_chars) {
    return { ...body, cut: body.cut + chars };
  }
  return { ...body, parts: [...body.parts, part], chars: body.chars + chars };
}

function withText(body: Body, said: string): Body {
  const last = body.parts.at(-1);
  const goes_on = last?.type === 'text';
  // Once something was left out, what comes later would stand in the wrong place.
  const has_room = body.cut === 0 && (goes_on || body.parts.length < bounds.parts);
  const room = has_room ? Math.max(0, bounds.text_chars - body.text_chars) : 0;
  const text = headOf(said, room);
  const cut = body.cut + said.length - text.length;
  if (text === '') return cut === body.cut ? body : { ...body, cut };
  const parts: Part[] = goes_on
    ? [...body.parts.slice(0, -1), { type: 'text', text: last.text + text }]
    : [...body.parts, { type: 'text', text }];
  const { length } = text;
  return { parts, chars: body.chars + length, text_chars: body.text_chars + length, cut };
}

/** Everything in it that is text. */
export function textOf({ parts }: Body): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

export function partOf(block: unknown): Part {
  const { type, text, data, uri, name, title, mimeType, size, resource } = fieldsOf(block);
  const [address, mime_type] = [wordOf(uri), wordOf(mimeType)];
  if (type === 'text' && typeof text === 'string') return { type, text };
  if ((type === 'image' || type === 'audio') && mime_type !== null) {
    return { type, mime_type, data: mediaOf(data), uri: address };
  }
  if (type === 'resource_link' && address !== null) {
    const label = { name: wordOf(name) ?? address, title: wordOf(title) };
    return { type: 'link', uri: address, ...label, mime_type, size: numberOf(size) };
  }
  if (type === 'resource') return resourceOf(fieldsOf(resource)) ?? { type: 'unknown', raw: rawOf(block) };
  return { type: 'unknown', raw: rawOf(block) };
}

function resourceOf({ uri, mimeType, text }: Fields): Part | null {
  const address = wordOf(uri);
  if (address === null) return null;
  const content = typeof text === 'string' ? headOf(text, bounds.text_chars) : null;
  return { type: 'resource', uri: address, mime_type: wordOf(mimeType), text: content };
}

function mediaOf(data: unknown): string | null {
  const base64 = stringOf(data);
  return base64 !== null && base64 !== '' && base64.length <= bounds.media_chars ? base64 : null;
}

export function charsOf(part: Part): number {
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
