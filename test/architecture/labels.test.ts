/** Labels in the web UI are in sentence case: buttons, headings and names of fields begin with a capital letter. */
import { parseSync } from 'vite';
import { expect, test } from 'vitest';
import { isForTests, sourceFiles } from './source.ts';

/** Elements whose text is a label. */
const ELEMENTS = new Set(['Button', 'button', 'h1', 'h2', 'h3', 'h4', 'legend', 'summary', 'dt']);
/** Properties of components and objects that hold one. `aria-label` is not one of them: it may be part of a line. */
const PROPERTIES = new Set(['label', 'heading', 'summary']);
/** Names that are written like this everywhere. */
const NAMES = /^(svc|stdout|stderr|npm|git)\b/;
/** Texts that the UI puts into a sentence, such as `Back to agents`. */
const PARTS = new Set(['agents', 'teams', 'runs', 'waiting for']);

interface Node {
  type: string;
  [property: string]: unknown;
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';

/** The text at the beginning of a value, if it is written there. */
function beginning(value: unknown): string | null {
  if (!isNode(value)) return null;
  switch (value.type) {
    case 'Literal':
    case 'JSXText':
      return typeof value.value === 'string' ? value.value : null;
    case 'TemplateLiteral':
      return (value.quasis as { value: { cooked: string } }[])[0]!.value.cooked;
    case 'JSXExpressionContainer':
      return beginning(value.expression);
    default:
      return null;
  }
}

/** The labels that a node contains itself. */
function labelsOf(node: Node): (string | null)[] {
  switch (node.type) {
    case 'JSXElement': {
      const { name } = (node.openingElement as Node).name as { name?: string };
      const [first] = (node.children as Node[]).filter((child) => beginning(child)?.trim() !== '');
      return ELEMENTS.has(name ?? '') ? [beginning(first)] : [];
    }
    case 'JSXAttribute':
      return PROPERTIES.has((node.name as { name: string }).name) ? [beginning(node.value)] : [];
    case 'Property':
      return PROPERTIES.has((node.key as { name: string }).name) ? [beginning(node.value)] : [];
    default:
      return [];
  }
}

function listLabels(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(listLabels);
  if (typeof value !== 'object' || value === null) return [];
  const own = isNode(value) ? labelsOf(value).filter((label) => label !== null) : [];
  return [...own, ...Object.values(value).flatMap(listLabels)];
}

/** Labels that begin with a lower-case letter. */
function findLowerCase(path: string, text: string): string[] {
  return listLabels(parseSync(path, text).program)
    .map((label) => label.trim())
    .filter((label) => /^\p{Ll}/u.test(label) && !NAMES.test(label) && !PARTS.has(label));
}

test('labels of the web UI begin with a capital letter', () => {
  const files = sourceFiles('src/web').filter(({ path }) => !isForTests(path) && !path.includes('/gallery/'));
  const found = files.flatMap(({ path, text }) =>
    findLowerCase(path, text).map((label) => `${path}: ${label}`),
  );
  expect(found).toEqual([]);
});

test('finds labels in elements, properties and objects, and ignores text of lines', () => {
  const source = `const choices = [{ label: 'act now' }, { label: 'Wait' }];
    const page = <div title="in a line"><h2> two words</h2><Field label={\`of \${name}\`} />
      <Button icon={<X />}>{icon} go</Button><Button>{text}</Button><p>words</p></div>;`;
  expect(findLowerCase('a.tsx', source)).toEqual(['act now', 'two words', 'of']);
});
