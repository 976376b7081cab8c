/** A path on one line. Its folder is shortened before its name, which says the most. */

export function PathText({ path }: { path: string }) {
  const at = Math.max(0, path.lastIndexOf('/'));
  const slash = at > 0 || path.startsWith('/') ? 1 : 0;
  return (
    <span dir="ltr" className="flex min-w-0">
      <span className={at > 4 ? 'min-w-4 shrink-999 truncate' : 'shrink-0'}>{path.slice(0, at)}</span>
      <span className="min-w-0 truncate">
        {slash > 0 && '/'}
        <bdi>{path.slice(at + slash)}</bdi>
      </span>
    </span>
  );
}
