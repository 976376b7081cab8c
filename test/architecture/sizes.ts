/** Sizes of files and functions, and how deep their statements are nested. */
import { parseSync } from 'vite';

export const file_lines_max = 500;
export const function_lines_max = 80;
export const nesting_max = 4;

export interface SizeProblem {
  /** `path`, or `path: name` for a function. */
  where: string;
  text: string;
}

interface Node {
  type: string;
  start: number;
  end: number;
  [key: string]: unknown;
}

const FUNCTION = /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/;
const NESTED =
  /^(IfStatement|ForStatement|ForOfStatement|ForInStatement|WhileStatement|DoWhileStatement|TryStatement|SwitchStatement)$/;

/** What exceeds the limits in one file. Nesting counts from the start of each function; `else if` adds nothing. */
export function sizeProblems(path: string, text: string): SizeProblem[] {
  const found: SizeProblem[] = [];
  const lines = text.split('\n').length - 1;
  if (lines > file_lines_max) found.push({ where: path, text: `${lines} lines; split it by topic` });
  const lineOf = (offset: number) => text.slice(0, offset).split('\n').length;
  const visit = (value: unknown, depth: number, name: string, scope: string): void => {
    if (Array.isArray(value)) {
      for (const one of value) visit(one, depth, name, scope);
      return;
    }
    if (!isNode(value)) return;
    let inner = depth;
    let inside = scope;
    const own = nameOf(value) ?? name;
    if (FUNCTION.test(value.type) && value.body) {
      const length = lineOf(value.end) - lineOf(value.start) + 1;
      if (length > function_lines_max) {
        found.push({ where: `${path}: ${own}`, text: `${length} lines; split the function` });
      }
      inner = 0;
      inside = own;
    }
    if (NESTED.test(value.type)) {
      inner = depth + 1;
      if (inner > nesting_max) {
        found.push({
          where: `${path}: ${inside}`,
          text: `nested ${inner} deep; return early, or extract a function`,
        });
      }
    }
    for (const [key, child] of Object.entries(value)) {
      if (key === 'type' || key === 'start' || key === 'end') continue;
      const is_else_if =
        value.type === 'IfStatement' && key === 'alternate' && isNode(child) && child.type === 'IfStatement';
      visit(child, is_else_if ? depth : inner, own, inside);
    }
  };
  visit(parseSync(path, text).program, 0, 'module', 'module');
  return found;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
}

/** The name of a declaration, property or method. */
function nameOf(node: Node): string | undefined {
  const named = (node.id ?? node.key) as Node | null | undefined;
  return isNode(named) && typeof named.name === 'string' ? named.name : undefined;
}
