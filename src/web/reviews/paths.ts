/** A path for display (pure): relative if it is inside the folder, otherwise complete. */
import { escapeHidden } from '../../core/visible.ts';

export function relativePath(path: string, workdir: string | undefined): string {
  const inside = workdir !== undefined && path.startsWith(`${workdir}/`) && !path.includes('/../');
  return escapeHidden(inside ? path.slice(workdir.length + 1) : path);
}
