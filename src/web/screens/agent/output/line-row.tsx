/** One line of output. It has few elements, because there are many lines. */
import { memo, type Ref } from 'react';
import type { Line } from '../../../transcript/lines.ts';
import { parseSpans, type Span } from '../../../transcript/spans.ts';
import { cx } from '../../../ui/cx.ts';
import { getStyle } from './colors.ts';
import { isErrorLine } from './errors.ts';
import { splitPieces } from './finder.ts';

export interface LineRowProps {
  line: Line;
  index: number;
  /** The search pattern. */
  pattern: RegExp | null;
  /** It is in the selected range. */
  chosen: boolean;
  /** It is the current match. */
  current: boolean;
  wrap: boolean;
  times: boolean;
  /** The width of the line numbers, in characters. */
  digits: number;
  ref?: Ref<HTMLDivElement> | undefined;
}

export const LineRow = memo(function LineRow(props: LineRowProps) {
  const { line, index, pattern, chosen, current, wrap, times, digits, ref } = props;
  const is_stderr = line.stream === 'stderr';
  const spans = parseSpans(line.raw, line.carry);
  // Most programs also print harmless messages to stderr.
  const is_error = isErrorLine(spans.map(({ text }) => text).join(''));
  return (
    <div
      ref={ref}
      data-index={index}
      data-line={line.n}
      data-chosen={chosen || undefined}
      className={cx(
        'flex min-w-full border-l-2',
        wrap ? 'min-h-5 pointer-coarse:min-h-6' : 'h-5 pointer-coarse:h-6',
        is_stderr ? 'border-l-failed' : 'border-l-transparent',
        chosen || current ? 'bg-marked' : is_error && 'bg-removed',
      )}
    >
      <a
        href={`#L${line.n}`}
        tabIndex={-1}
        className="shrink-0 select-none px-2 text-right text-muted hover:text-text hover:underline"
        style={{ minWidth: `calc(${digits}ch + 16px)` }}
      >
        {line.n}
      </a>
      {times && (
        <time
          className="shrink-0 select-none pr-3 text-muted"
          dateTime={new Date(line.ts * 1000).toISOString()}
        >
          {formatTime(line.ts)}
        </time>
      )}
      {is_stderr && (
        <span className="shrink-0 select-none pr-2 font-semibold text-failed" title="stderr">
          !
        </span>
      )}
      <span className={cx('pr-3', wrap ? 'min-w-0 whitespace-pre-wrap break-all' : 'whitespace-pre')}>
        {renderText(spans, pattern, current)}
      </span>
    </div>
  );
});

function renderText(spans: readonly Span[], pattern: RegExp | null, current: boolean) {
  const pieces = pattern
    ? splitPieces(spans, pattern)
    : spans.map((span) => ({ span, text: span.text, hit: false }));
  let from = 0;
  return pieces.flatMap(({ span, text, hit }, at) => {
    const [key, style] = [from, getStyle(span)];
    from += text.length;
    const begins_rest = span.is_rest && pieces[at - 1]?.span !== span;
    return [begins_rest && REST, text && renderPiece()];

    function renderPiece() {
      if (hit) {
        return (
          <mark key={key} className={current ? 'bg-accent text-on-accent' : 'bg-accent/25 text-text'}>
            {text}
          </mark>
        );
      }
      if (!style) return text;
      return (
        <span key={key} style={style}>
          {text}
        </span>
      );
    }
  });
}

const REST = (
  <span key="rest" className="select-none px-1 text-muted" title="This line changes its color too often">
    [colors end]
  </span>
);

function formatTime(ts: number): string {
  const date = new Date(ts * 1000);
  const two = (n: number) => String(n).padStart(2, '0');
  const ms = String(date.getMilliseconds()).padStart(3, '0');
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${ms}`;
}
