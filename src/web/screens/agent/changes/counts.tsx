/** The numbers of added and removed lines; null for a binary file. */
export function Counts({ additions, deletions }: { additions: number | null; deletions: number | null }) {
  if (additions === null && deletions === null) return <span className="text-muted">binary</span>;
  return (
    <span className="whitespace-nowrap">
      <span className="text-completed">
        <span className="sr-only">added </span>+{additions ?? 0}
      </span>{' '}
      <span className="text-failed">
        <span className="sr-only">removed </span>−{deletions ?? 0}
      </span>
    </span>
  );
}
