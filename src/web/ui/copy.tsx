import { Check, Copy as CopyIcon } from 'lucide-react';
import { useEffect, useState } from 'react';
import { Button, type ButtonProps } from './button.tsx';

/** A button that copies a text and confirms it. */
export function Copy({
  text,
  label = 'Copy',
  variant = 'plain',
}: {
  text: string;
  label?: string;
  variant?: NonNullable<ButtonProps['variant']>;
}) {
  const [result, setResult] = useState<string | null>(null);
  useEffect(() => {
    if (result === null) return;
    const timer = setTimeout(() => setResult(null), 2000);
    return () => clearTimeout(timer);
  }, [result]);
  return (
    <Button
      variant={variant}
      icon={result === 'Copied' ? <Check aria-hidden /> : <CopyIcon aria-hidden />}
      onClick={() =>
        copyText(text).then(
          () => setResult('Copied'),
          () => setResult('Copy failed'),
        )
      }
    >
      <span aria-live="polite">{result ?? label}</span>
    </Button>
  );
}

/** Copies a text. Outside a secure context there is no clipboard API, so it copies a selection. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const focused = document.activeElement;
  const area = document.createElement('textarea');
  area.value = text;
  // Without an on-screen keyboard on phones.
  area.readOnly = true;
  area.style.position = 'fixed';
  area.style.opacity = '0';
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  if (!copied) throw new Error('The browser blocked copying.');
}
