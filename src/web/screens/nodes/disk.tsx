/** The free space on a node's disk, with a warning if it is too little to start agents. */
import { CircleAlert } from 'lucide-react';
import type { ListedNode } from './listed.ts';

type Disk = NonNullable<ListedNode['disk']>;

export function FreeDisk({ disk }: { disk: Disk }) {
  const { path, free_bytes, total_bytes, starts_allowed } = disk;
  const about = `${formatBytes(free_bytes)} of ${formatBytes(total_bytes)} free at ${path}`;
  return (
    <span
      className={`inline-flex items-center gap-1 whitespace-nowrap tabular-nums ${starts_allowed ? '' : 'text-failed'}`}
      title={starts_allowed ? about : `${about}. Too little to start agents.`}
    >
      {!starts_allowed && <CircleAlert aria-hidden className="size-3.5 shrink-0" />}
      {formatBytes(free_bytes)}
      {!starts_allowed && <span className="sr-only">, too little to start agents</span>}
    </span>
  );
}

/** In GiB or TiB, with one decimal place below 10. */
export function formatBytes(bytes: number): string {
  const gib = bytes / 2 ** 30;
  const [value, unit] = gib >= 1024 ? [gib / 1024, 'TiB'] : [gib, 'GiB'];
  // Rounded down, because more free space than there is would be wrong.
  return `${value < 10 ? (Math.floor(value * 10) / 10).toFixed(1) : Math.floor(value)} ${unit}`;
}
