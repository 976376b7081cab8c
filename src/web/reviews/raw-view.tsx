/** Any value as JSON, folded by default. */
import { useState } from 'react';
import { escapeHidden } from '../../core/visible.ts';
import { ScrollBox } from '../ui/scroll-box.tsx';

export function RawView({
  label,
  value,
  truncated = false,
}: {
  label: string;
  value: unknown;
  truncated?: boolean;
}) {
  const [open, setOpen] = useState(false);
  return (
    <details className="min-w-0" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="tap inline-flex cursor-pointer items-center text-muted text-sm">
        {open ? '▾' : '▸'} {label}
      </summary>
      {open && (
        <ScrollBox label="JSON" className="max-h-80 rounded bg-surface p-2">
          <pre className="w-max font-mono text-sm" dir="ltr">
            {escapeHidden(formatJson(value))}
            {truncated && '\n…'}
          </pre>
        </ScrollBox>
      )}
    </details>
  );
}

function formatJson(value: unknown): string {
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value, null, 2) ?? '';
  } catch {
    return String(value);
  }
}
