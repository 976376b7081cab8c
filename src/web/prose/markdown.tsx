/**
 * An agent's message as Markdown. Raw HTML stays text, nothing is loaded from other hosts, and links show their full URL.
 * Only the last block of a growing message is rendered again.
 */
import { ExternalLink, Image } from 'lucide-react';
import { createContext, memo, type ReactNode, useContext, useState } from 'react';
import Markdown, { type Components, type ExtraProps, type Options } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import remend from 'remend';
import { isFenced, isTooMarked, MarkdownBlocks, openFence, splitBlocks } from '../transcript/blocks.ts';
import { type Definitions, escapeFootnotes, References } from '../transcript/references.ts';
import { cx } from '../ui/cx.ts';
import { ScrollBox } from '../ui/scroll-box.tsx';
import { CodeBlock } from './code.tsx';
import { GrowingText } from './growing-text.tsx';
import { webAddress } from './links.ts';
import './prose.css';

export const components: Components = {
  a: ({ href, children }) => <Address to={href}>{children}</Address>,
  img: ({ src, alt }) => <Picture src={typeof src === 'string' ? src : undefined} alt={alt} />,
  pre: ({ node, children }) => {
    const code = readCode(node);
    return code ? <CodeBlock text={code.text} language={code.language} /> : <pre>{children}</pre>;
  },
  code: ({ children }) => (
    <code className="break-words rounded bg-surface px-1 font-mono text-sm">{children}</code>
  ),
  table: ({ children }) => (
    <ScrollBox label="Table" className="my-2">
      <table className="border-collapse [&_td]:border [&_td]:px-2 [&_th]:border [&_th]:px-2 [&_th]:text-start">
        {children}
      </table>
    </ScrollBox>
  ),
  // An agent's headings are not headings of the page.
  h1: ({ children }) => <p className="measure mt-3 mb-1 font-semibold text-lg">{children}</p>,
  h2: ({ children }) => <p className="measure mt-3 mb-1 font-semibold">{children}</p>,
  h3: ({ children }) => <p className="measure mt-2 mb-1 font-semibold">{children}</p>,
  h4: ({ children }) => <p className="measure mt-2 mb-1 font-medium">{children}</p>,
  h5: ({ children }) => <p className="measure mt-2 mb-1 font-medium">{children}</p>,
  h6: ({ children }) => <p className="measure mt-2 mb-1 font-medium">{children}</p>,
  p: ({ children }) => <p className="measure my-1.5">{children}</p>,
  ul: ({ children }) => <ul className="measure my-1.5 list-disc ps-6">{children}</ul>,
  ol: ({ children, start }) => (
    <ol start={start} className="measure my-1.5 list-decimal ps-6">
      {children}
    </ol>
  ),
  blockquote: ({ children }) => (
    <blockquote className="measure my-1.5 border-line-strong border-s-2 ps-3 text-muted">
      {children}
    </blockquote>
  ),
  hr: () => <hr className="my-3" />,
  input: ({ checked }) => <span>{checked ? '☑' : '☐'}</span>,
};

/** The code in a block of code, the first word after its fence, and the others. Null for another block. */
export function readCode(block: ExtraProps['node']): { text: string; language: string; info: string } | null {
  const code = block?.children[0];
  if (code?.type !== 'element' || code.tagName !== 'code') return null;
  const text = code.children.map((child) => (child.type === 'text' ? child.value : '')).join('');
  const [, language = ''] = /language-(\S+)/.exec(String(code.properties.className ?? '')) ?? [];
  return { text: text.replace(/\n$/, ''), language, info: code.data?.meta ?? '' };
}

/** How Markdown is shown. */
interface ProseOptions {
  options: Options;
  /** What is shown of a text that is not parsed. */
  plain: (text: string) => string;
}

/** Must be the same objects in each render: blocks are rendered again when they change. */
export const ProseContext = createContext<ProseOptions>({
  options: { remarkPlugins: [remarkGfm], components },
  plain: (text) => text,
});

/** A longer block that still grows is shown as plain text: parsing it again for each chunk would be too slow. */
const TAIL_CHARS = 8_000;

export const Prose = memo(function Prose({ text, grows = false }: { text: string; grows?: boolean }) {
  const [markdown] = useState(() => new MarkdownBlocks());
  const [references] = useState(() => new References());
  markdown.update(text);
  if (markdown.is_too_nested) return <PlainText text={text} grows={grows} />;
  const { finished, tail, definitions } = markdown;
  const rest = grows ? { blocks: [], definitions } : readTail(tail, definitions);
  const blocks = references.resolve([...finished, ...rest.blocks], rest.definitions, isUnchangeable);
  const last = Math.floor(blocks.length / GROUP);
  return (
    <div
      dir="auto"
      className={cx('blocks min-w-0 break-words text-prose [overflow-wrap:anywhere]', grows && 'with-caret')}
    >
      {Array.from({ length: last + 1 }, (_, at) => (
        <BlockGroup
          // biome-ignore lint/suspicious/noArrayIndexKey: blocks never change places
          key={at}
          finished={blocks.slice(at * GROUP, (at + 1) * GROUP)}
          tail={at === last && grows ? tail : null}
        />
      ))}
    </div>
  );
});

/** Blocks that are rendered again together, of which only the last group changes while a message grows. */
const GROUP = 32;

/** The blocks of the tail of a complete text. Only definitions need it to be parsed here. */
function readTail(tail: string, known: Definitions): { blocks: string[]; definitions: Definitions } {
  return tail.includes(']:') ? splitBlocks(tail, known) : { blocks: [tail], definitions: known };
}

/** Definitions of links cannot be added to code, nor to what is shown unparsed. */
function isUnchangeable(block: string): boolean {
  return isFenced(block) || isTooMarked(block);
}

interface BlockGroupProps {
  finished: readonly string[];
  /** Null: it is in a later group, or the text is complete. */
  tail: string | null;
}

const BlockGroup = memo(
  function BlockGroup({ finished, tail }: BlockGroupProps) {
    return (
      <>
        {[
          // biome-ignore lint/suspicious/noArrayIndexKey: blocks never change places
          ...finished.map((block, at) => <MarkdownBlock key={at} text={block} />),
          tail !== null && showTail(finished.length, tail),
        ]}
      </>
    );
  },
  (a, b) =>
    a.tail === b.tail &&
    a.finished.length === b.finished.length &&
    a.finished.every((block, at) => block === b.finished[at]),
);

/** Not a component: with its key, in the same array, it becomes the next finished block without being mounted again. */
function showTail(key: number, tail: string): ReactNode {
  const code = openFence(tail);
  if (code) return <CodeBlock key={key} text={code.code} language={code.language} grows />;
  if (tail.length > TAIL_CHARS) return <PlainText key={key} text={tail} grows />;
  return <MarkdownBlock key={key} text={remend(tail)} />;
}

function PlainText({ text, grows = false }: { text: string; grows?: boolean }) {
  const { plain } = useContext(ProseContext);
  return (
    <p dir="auto" className="measure my-1.5 whitespace-pre-wrap break-words [overflow-wrap:anywhere]">
      {grows ? <GrowingText text={text} between="words" /> : plain(text)}
    </p>
  );
}

const MarkdownBlock = memo(function MarkdownBlock({ text }: { text: string }) {
  const { options } = useContext(ProseContext);
  if (isTooMarked(text)) return <PlainText text={text} />;
  return (
    <Markdown {...options} urlTransform={(url) => url}>
      {escapeFootnotes(text)}
    </Markdown>
  );
});

/** A link in an agent's message. Anything but http and https stays text. */
export function Address({ to, children }: { to: string | undefined; children?: ReactNode }) {
  const address = webAddress(to);
  if (address === null) {
    return (
      <span>
        {children}
        {to && to !== children && !to.startsWith('#') && <span className="text-muted text-sm"> ({to})</span>}
      </span>
    );
  }
  return (
    <>
      <a
        href={address}
        target="_blank"
        rel="noreferrer noopener"
        title={address}
        className="break-all underline decoration-line-strong underline-offset-2 hover:decoration-current"
      >
        {children}
        <ExternalLink aria-label="opens in a new tab" className="ms-0.5 inline size-3" />
      </a>
      {children !== to && children !== address && (
        <span className="break-all text-muted text-sm"> {address}</span>
      )}
    </>
  );
}

/** An image is never loaded into the page; a link opens it. */
function Picture({ src, alt }: { src: string | undefined; alt: string | undefined }) {
  return (
    <span className="inline-flex flex-wrap items-center gap-1 rounded border border-line px-1.5">
      <Image aria-label="image" className="size-3.5 text-muted" />
      <Address to={src}>{alt || src || 'image'}</Address>
    </span>
  );
}
