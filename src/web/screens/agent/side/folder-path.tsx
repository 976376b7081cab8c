/** A folder's path on one line, shortened in the middle, with a button that copies it. */
import { Copy } from 'lucide-react';
import { escapeHidden } from '../../../../core/visible.ts';
import { IconButton } from '../../../ui/button.tsx';
import { copyText } from '../../../ui/copy.tsx';
import { showToast } from '../../../ui/toast.tsx';

export function FolderPath({ path }: { path: string }) {
  const shown = escapeHidden(path);
  // The end says the most.
  const at = Math.max(0, shown.lastIndexOf('/'));
  const copy = () =>
    copyText(path).then(
      () => showToast('Copied'),
      () => showToast('The browser blocked copying.'),
    );
  return (
    <p className="flex min-w-0 items-center gap-1 text-muted">
      <span className="flex min-w-0 flex-1 font-mono text-sm" dir="ltr" title={shown}>
        <span className={at > 4 ? 'min-w-8 truncate' : 'shrink-0'}>{shown.slice(0, at)}</span>
        <span className="max-w-[80%] shrink-0 truncate">{shown.slice(at)}</span>
      </span>
      <IconButton label="Copy path" icon={<Copy aria-hidden />} onClick={() => void copy()} />
    </p>
  );
}
