import { Check, Copy as CopyIcon } from 'lucide-react';
import { useEffect, useState } from 'react';
import { Button } from './button.tsx';

/** Copies a text and says that it did. */
export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [said, setSaid] = useState<string | null>(null);
  useEffect(() => {
    if (said === null) return;
    const timer = setTimeout(() => setSaid(null), 2000);
    return () => clearTimeout(timer);
  }, [said]);
  return (
    <Button
      icon={said === 'Copied' ? <Check aria-hidden /> : <CopyIcon aria-hidden />}
      onClick={() =>
        copyText(text).then(
          () => setSaid('Copied'),
          () => setSaid('Not allowed'),
        )
      }
    >
      <span aria-live="polite">{said ?? label}</span>
    </Button>
  );
}

/** Without a secure context a browser has no clipboard for pages, only the copying of a selection. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  area.style.position = 'fixed';
  area.style.opacity = '0';
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  if (!copied) throw new Error('copying is not allowed here');
}
