/** A folder's path on one line, shortened in the middle, with a button that copies it. */
import { Copy } from 'lucide-react';
import { escapeHidden } from '../../../../core/visible.ts';
import { IconButton } from '../../../ui/button.tsx';
import { copyText } from '../../../ui/copy.tsx';
import { PathText } from '../../../ui/path-text.tsx';
import { showToast } from '../../../ui/toast.tsx';

export function FolderPath({ path }: { path: string }) {
  const shown = escapeHidden(path);
  const copy = () =>
    copyText(path).then(
      () => showToast('Copied'),
      () => showToast('The browser blocked copying.'),
    );
  return (
    <p className="flex min-w-0 items-center gap-1 text-muted">
      <PathText path={shown} title={shown} className="flex-1 font-mono text-sm" />
      <IconButton label="Copy path" icon={<Copy aria-hidden />} onClick={() => void copy()} />
    </p>
  );
}
