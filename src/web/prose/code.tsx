/** A block of code with a copy button. */
import { Copy } from '../ui/copy.tsx';
import { cx } from '../ui/cx.ts';
import { ScrollBox } from '../ui/scroll-box.tsx';
import { GrowingText } from './growing-text.tsx';

/**
 * `shown`: the text with its hidden characters made visible; the button copies the text itself. `grows`: more of the text may
 * follow. `wraps`: no part of a line is out of view.
 */
export function CodeBlock({
  text,
  shown = text,
  language,
  grows = false,
  wraps = false,
}: {
  text: string;
  shown?: string;
  language?: string;
  grows?: boolean;
  wraps?: boolean;
}) {
  return (
    <figure className="my-2 min-w-0 rounded-md border border-line">
      <figcaption
        dir="ltr"
        className="flex items-center justify-between rounded-t-md bg-surface pl-3 text-muted text-sm"
      >
        <span className={wraps ? WRAPS : 'truncate'}>{language || 'text'}</span>
        <Copy text={text} />
      </figcaption>
      <ScrollBox label="Code">
        <pre className={cx('p-3 font-mono text-sm', wraps ? WRAPS : 'w-max min-w-full')} dir="ltr">
          <code>{grows ? <GrowingText text={shown} between="lines" /> : shown}</code>
        </pre>
      </ScrollBox>
    </figure>
  );
}

const WRAPS = 'min-w-0 whitespace-pre-wrap [overflow-wrap:anywhere]';
