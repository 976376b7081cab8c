/** Changed files by their folders. Pure. */
import type { ChangedFile } from './parsed.ts';

export interface Folder {
  /** From the folder above; `src/web` where nothing else differs in `src`. */
  name: string;
  /** From the agent's folder. */
  path: string;
  children: (Folder | ChangedFile)[];
}

export function isFolder(node: Folder | ChangedFile): node is Folder {
  return 'children' in node;
}

/** `files` by path; the tree has them in the same order. */
export function treeOf(files: readonly ChangedFile[]): (Folder | ChangedFile)[] {
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

/** A folder that holds one folder and nothing else is one row with it. */
function joined(node: Folder | ChangedFile): Folder | ChangedFile {
  if (!isFolder(node)) return node;
  const children = node.children.map(joined);
  const [only] = children;
  if (children.length === 1 && only && isFolder(only)) return { ...only, name: `${node.name}/${only.name}` };
  return { ...node, children };
}

export function filesIn(node: Folder | ChangedFile): number {
  return isFolder(node) ? node.children.reduce((sum, child) => sum + filesIn(child), 0) : 1;
}
