/** A path as people read it where the folder is said elsewhere (pure): inside it without it, outside it whole. */
import { visible } from '../../core/visible.ts';

export function pathIn(path: string, workdir: string | undefined): string {
  const inside = workdir !== undefined && path.startsWith(`${workdir}/`) && !path.includes('/../');
  return visible(inside ? path.slice(workdir.length + 1) : path);
}
