/** A folder's path on one line, shortened in the middle, with a button that copies it. */
import { Copy } from 'lucide-react';
import { escapeHidden } from '../../../../core/visible.ts';
import { IconButton } from '../../../ui/button.tsx';
import { copyText } from '../../../ui/copy.tsx';
import { showToast } from '../../../ui/toast.tsx';

export function FolderPath({ path }: { path: string }) {
  const shown = escapeHidden(path);
  // The last 16 characters are always in view.
  const [, start, end] = /^(.*?)(.{0,16})$/su.exec(shown)!;
  const copy = () =>
    copyText(path).then(
      () => showToast('Copied'),
      () => showToast('The browser blocked copying.'),
    );
  return (
    <p className="flex min-w-0 items-center gap-1 text-muted">
      <span
        dir="ltr"
        title={shown}
        className="min-w-0 flex-1 overflow-hidden whitespace-pre font-mono text-sm"
      >
        {/* An inline block, because copying a selection of flex items adds a line break between them. */}
        <span className="inline-block max-w-[calc(100%-16ch)] overflow-hidden text-ellipsis align-bottom">
          {start}
        </span>
        {end}
      </span>
      <IconButton label="Copy path" icon={<Copy aria-hidden />} onClick={() => void copy()} />
    </p>
  );
}
