/** The path of a folder on one line, cut at its beginning if it is too long, with a button that copies it. */
import { Copy } from 'lucide-react';
import { escapeHidden } from '../../../../core/visible.ts';
import { IconButton } from '../../../ui/button.tsx';
import { copyText } from '../../../ui/copy.tsx';
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
      {/* From right to left, so that a long path is cut at its beginning: its end says the most. */}
      <span dir="rtl" title={shown} className="min-w-0 flex-1 truncate text-left font-mono text-sm">
        <bdi dir="ltr" className="whitespace-pre">
          {shown}
        </bdi>
      </span>
      <IconButton label="Copy path" icon={<Copy aria-hidden />} onClick={() => void copy()} />
    </p>
  );
}
