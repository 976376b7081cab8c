/** Changed files as a tree of folders. Pure. */
import type { ChangedFile } from './parsed.ts';

export interface Folder {
  /** Relative to the parent; `src/web` if nothing else in `src` changed. */
  name: string;
  /** Relative to the agent's folder. */
  path: string;
  children: (Folder | ChangedFile)[];
}

export function isFolder(node: Folder | ChangedFile): node is Folder {
  return 'children' in node;
}

/** `files` must be sorted by path; the tree keeps their order. */
export function buildTree(files: readonly ChangedFile[]): (Folder | ChangedFile)[] {
  const root: Folder = { name: '', path: '', children: [] };
  for (const file of files) {
    let folder = root;
    for (const name of file.path.split('/').slice(0, -1)) {
      const last = folder.children.at(-1);
      if (last && isFolder(last) && last.name === name) {
        folder = last;
        continue;
      }
      const path = folder === root ? name : `${folder.path}/${name}`;
      const below: Folder = { name, path, children: [] };
      folder.children.push(below);
      folder = below;
    }
    folder.children.push(file);
  }
  return root.children.map(joined);
}

/** Joins a folder that contains only one folder with it. */
function joined(node: Folder | ChangedFile): Folder | ChangedFile {
  if (!isFolder(node)) return node;
  const children = node.children.map(joined);
  const [only] = children;
  if (children.length === 1 && only && isFolder(only)) return { ...only, name: `${node.name}/${only.name}` };
  return { ...node, children };
}

export function countFiles(node: Folder | ChangedFile): number {
  return isFolder(node) ? node.children.reduce((sum, child) => sum + countFiles(child), 0) : 1;
}
