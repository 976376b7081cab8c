/** Viewed marks of files (pure). A mark is removed when the file changes again. */

export interface Viewed {
  readonly path: string;
  readonly additions: number | null;
  readonly deletions: number | null;
  readonly version: string | null;
}

export interface Marks {
  readonly head: string | null;
  readonly files: Readonly<Record<string, string>>;
}

export function parseViewed(text: string | null, head: string | null): Marks {
  try {
    const stored = JSON.parse(text ?? '') as Partial<Marks>;
    if (stored.head === head && typeof stored.files === 'object' && stored.files)
      return { head, files: stored.files };
  } catch {}
  return { head, files: {} };
}

export function isViewed({ files }: Marks, file: Viewed): boolean {
  return Object.hasOwn(files, file.path) && files[file.path] === fileState(file);
}

export function withViewed({ head, files }: Marks, file: Viewed, viewed: boolean): Marks {
  const others = Object.entries(files).filter(([path]) => path !== file.path);
  return { head, files: Object.fromEntries(viewed ? [...others, [file.path, fileState(file)]] : others) };
}

/** Nodes of an earlier release send no version; then the counts are all that is known. */
function fileState({ additions, deletions, version }: Viewed): string {
  const counts = `+${additions ?? '?'}-${deletions ?? '?'}`;
  return version === null ? counts : `${counts} ${version}`;
}
