/** The input of the architecture tests: every source file with its parsed imports. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { parseSync, Visitor } from 'vite';

export const root = join(import.meta.dirname, '../..');

export interface SourceFile {
  /** From the repository's root, with forward slashes. */
  path: string;
  text: string;
  /** As written: relative paths, package names, `node:` modules. */
  imports: string[];
}

export function sourceFiles(folder: string): SourceFile[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name) && !name.includes('node_modules'))
    .map((name) => {
      const path = posix.join(folder, name.replaceAll('\\', '/'));
      const text = readFileSync(join(root, path), 'utf8');
      return { path, text, imports: importsOf(path, text) };
    });
}

/** Static, dynamic and type-only imports, and re-exports. */
export function importsOf(path: string, text: string): string[] {
  const { module, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);
  const from = module.staticExports.flatMap((statement) =>
    statement.entries.flatMap((entry) => (entry.moduleRequest ? [entry.moduleRequest.value] : [])),
  );
  const dynamic = module.dynamicImports.map(({ moduleRequest }) =>
    text.slice(moduleRequest.start, moduleRequest.end).replace(/^['"`]|['"`]$/g, ''),
  );
  return [...module.staticImports.map((statement) => statement.moduleRequest.value), ...from, ...dynamic];
}

/** The modules that a file loads as soon as it is loaded itself: no types, no dynamic imports. */
export function loadedBy(path: string, text: string): string[] {
  const { staticImports, staticExports } = parseSync(path, text).module;
  const imports = staticImports.filter(
    ({ entries }) => entries.length === 0 || entries.some(({ isType }) => !isType),
  );
  const exports = staticExports.flatMap(({ entries }) => entries.filter(({ isType }) => !isType));
  return [
    ...imports.map(({ moduleRequest }) => moduleRequest.value),
    ...exports.flatMap(({ moduleRequest }) => (moduleRequest ? [moduleRequest.value] : [])),
  ];
}

/** The calls whose callee reads like this: where they are (`path:line`), and their second argument as written. */
export function callsOf({ path, text }: SourceFile, callee: RegExp): { place: string; options?: string }[] {
  const calls: { place: string; options?: string }[] = [];
  const written = ({ start, end }: { start: number; end: number }) => text.slice(start, end);
  const visitor = new Visitor({
    CallExpression(call) {
      if (!callee.test(written(call.callee))) return;
      const place = `${path}:${text.slice(0, call.start).split('\n').length}`;
      const options = call.arguments[1];
      calls.push({ place, ...(options && { options: written(options) }) });
    },
  });
  visitor.visit(parseSync(path, text).program);
  return calls;
}

/** The path of a relative import from the repository's root; null for packages. */
export function targetOf(file: string, imported: string): string | null {
  return imported.startsWith('.') ? posix.join(dirname(file), imported) : null;
}

/** Tests, and code that only they use (names of child processes end in `-child.ts`). Product code must not import them. */
export function isForTests(path: string): boolean {
  return path.startsWith('src/testing/') || /(\.test\.tsx?|\/testing\.ts|-child\.ts)$/.test(path);
}
