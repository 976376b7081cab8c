/** Any value as JSON, folded by default. */
import { escapeHidden } from '../../core/visible.ts';
import { Disclosure } from '../ui/disclosure.tsx';
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
  return (
    <Disclosure summary={label} lazy>
      <ScrollBox label="JSON" className="max-h-80 rounded-md bg-surface p-2">
        <pre className="whitespace-pre-wrap font-mono text-sm [overflow-wrap:anywhere]" dir="ltr">
          {escapeHidden(formatJson(value))}
          {truncated && '\n…'}
        </pre>
      </ScrollBox>
    </Disclosure>
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
