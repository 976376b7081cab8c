/** A foldable value of a run: JSON or text. */
import { escapeHidden } from '../../../core/visible.ts';
import { Copy } from '../../ui/copy.tsx';
import { Disclosure } from '../../ui/disclosure.tsx';
import { pretty } from './facts.ts';

/** Longer values are cut; the copy button copies all of it. */
const SHOWN_CHARS = 20_000;

export function Json({ label, value, open }: { label: string; value: unknown; open?: boolean }) {
  const text = pretty(value);
  return (
    <Disclosure
      open={open ?? false}
      summary={label}
      className="rounded-lg border border-line"
      summaryClass="w-full px-3 py-1 font-medium text-sm"
    >
      <div className="flex min-w-0 flex-col items-start gap-2 border-line border-t p-3">
        <section
          // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
          tabIndex={0}
          aria-label={label}
          className="max-h-80 w-full overflow-auto"
        >
          <pre className="whitespace-pre-wrap break-words font-mono text-sm">
            {escapeHidden(text.slice(0, SHOWN_CHARS))}
            {text.length > SHOWN_CHARS && '\n…'}
          </pre>
        </section>
        <Copy text={text} />
      </div>
    </Disclosure>
  );
}
