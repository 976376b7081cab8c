/** Paths that an agent names, as they are in its folder (pure): relative if inside the folder, otherwise complete. */
import { escapeHidden } from '../../core/visible.ts';

/** For links and requests. */
export function pathInFolder(path: string, workdir: string | undefined): string {
  const inside = workdir !== undefined && path.startsWith(`${workdir}/`) && !path.includes('/../');
  return inside ? path.slice(workdir.length + 1) : path;
}

/** For display: characters that are hidden or imitate others are shown as their code points. */
export function relativePath(path: string, workdir: string | undefined): string {
  return escapeHidden(pathInFolder(path, workdir));
}
