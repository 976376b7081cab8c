/**
 * Markdown in a permission review, of which nothing stays hidden: what Markdown leaves out is shown, and characters are named
 * after the text is parsed, because they may be written as entities.
 */
import type { Options } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import { escapeHidden } from '../../core/visible.ts';
import { CodeBlock } from '../prose/code.tsx';
import { components, Prose, ProseContext, readCode } from '../prose/markdown.tsx';

/** A node of a syntax tree, of Markdown or of HTML. */
interface Node {
  type: string;
  value?: string;
  children?: Node[];
  /** Of a link, an image, or their definition. */
  identifier?: string;
  /** Of fenced code: the first word after the fence, and the others. */
  lang?: string | null;
  meta?: string | null;
  /** Of a table: one for each column. */
  align?: (string | null)[];
  /** Of an element of HTML. */
  tagName?: string;
  properties?: Record<string, unknown>;
  position?: { start: { offset: number }; end: { offset: number } };
}

const options: Options = {
  remarkPlugins: [remarkGfm, showOmitted],
  rehypePlugins: [nameHidden],
  components: {
    ...components,
    pre: ({ node, children }) => {
      const code = readCode(node);
      if (!code) return <pre>{children}</pre>;
      const { text, info } = code;
      return <CodeBlock text={text} shown={escapeHidden(text)} language={escapeHidden(info)} wraps />;
    },
  },
};

const whole = { options, plain: escapeHidden };

export default function EvidenceText({ text }: { text: string }) {
  return (
    <ProseContext value={whole}>
      <Prose text={text} />
    </ProseContext>
  );
}

/**
 * A remark plugin. Shows definitions that no link in their block uses, all cells of each row of a table, and all that follows a
 * fence. Names runs of empty lines.
 */
function showOmitted() {
  return (tree: Node, file: unknown) => {
    const source = String(file);
    const nodes = listNodes(tree);
    const used = new Set(nodes.filter(({ type }) => type.endsWith('Reference')).map(keyOf));
    const seen = new Set<string>();
    const showDefinition = (node: Node): Node[] => {
      if (!/definition$/i.test(node.type)) return [node];
      const text = source.slice(node.position!.start.offset, node.position!.end.offset);
      // A block begins with a copy of each definition that it may use.
      if (seen.has(text)) return [];
      seen.add(text);
      // Its links show the first one.
      return used.delete(keyOf(node)) ? [node] : [paragraph(text)];
    };
    for (const node of nodes) {
      if (node.type === 'code') node.meta = [node.lang, node.meta].filter(Boolean).join(' ');
      if (node.type === 'table') {
        const columns = Math.max(...node.children!.map(({ children }) => children!.length));
        node.align = Array.from({ length: columns }, (_, at) => node.align?.[at] ?? null);
      }
      if (node.children) node.children = nameBreaks(node.children.flatMap(showDefinition));
    }
  };
}

function keyOf({ type, identifier }: Node): string {
  return `${type.startsWith('footnote')} ${identifier}`;
}

function paragraph(text: string): Node {
  return { type: 'paragraph', children: [{ type: 'text', value: text }] };
}

const EMPTY_LINES_MAX = 5;

function nameBreaks(nodes: readonly Node[]): Node[] {
  const named: Node[] = [];
  for (let at = 0; at < nodes.length; at++) {
    let end = at;
    while (nodes[end]?.type === 'break') end++;
    const empty_lines = end - at - 1;
    if (empty_lines > EMPTY_LINES_MAX) {
      named.push(nodes[at]!, { type: 'text', value: `⟨${empty_lines} empty lines⟩` });
      at = end - 1;
    }
    named.push(nodes[at]!);
  }
  return named;
}

/** A rehype plugin. Names hidden characters, also in titles, which are shown with their links. Code does that itself. */
function nameHidden() {
  return (tree: Node) => {
    for (const node of listNodes(tree, ({ tagName }) => tagName !== 'pre')) {
      if (node.value !== undefined) node.value = escapeHidden(node.value);
      const { alt, title } = node.properties ?? {};
      const shown_title = typeof title === 'string' ? ` “${escapeHidden(title)}”` : '';
      if (node.tagName === 'img') node.properties!.alt = escapeHidden(String(alt ?? '')) + shown_title;
      else if (shown_title !== '') node.children!.push({ type: 'text', value: shown_title });
    }
  };
}

/** In document order, without the descendants of those that are not `entered`. Not recursive, because nesting may be deep. */
function listNodes(tree: Node, isEntered: (node: Node) => boolean = () => true): Node[] {
  const nodes: Node[] = [];
  const rest = [tree];
  for (let node = rest.pop(); node; node = rest.pop()) {
    nodes.push(node);
    if (node.children && isEntered(node)) for (const child of node.children.toReversed()) rest.push(child);
  }
  return nodes;
}
