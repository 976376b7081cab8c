/** The bar with the actions for the selected lines. */
import { X } from 'lucide-react';
import type { Lines } from '../../../transcript/lines.ts';
import { IconButton } from '../../../ui/button.tsx';
import { Copy } from '../../../ui/copy.tsx';
import { formatRange, type Range } from './range.ts';

export function ChosenBar({
  lines,
  range,
  loaded,
  onClear,
}: {
  lines: Lines;
  range: Range;
  /** Whether all lines so far were read. */
  loaded: boolean;
  onClear: () => void;
}) {
  const { from, to } = range;
  const is_gone = to < lines.first && lines.last > 0;
  const is_ahead = loaded && from > lines.last;
  return (
    <div className="flex flex-wrap items-center gap-2 border-line border-b bg-marked px-3 py-1">
      <span className="min-w-0 flex-1">
        {from === to ? `Line ${from}` : `Lines ${from} to ${to}`}
        {is_gone && ` · this page starts at line ${lines.first}; download the output for the rest`}
        {is_ahead && ` · the last line is ${lines.last}`}
      </span>
      {from <= lines.last && !is_gone && (
        <Copy key={`text ${formatRange(range)}`} text={lines.copy(from, to)} label="Copy lines" />
      )}
      <Copy
        key={`link ${formatRange(range)}`}
        text={`${location.origin}${location.pathname}#${formatRange(range)}`}
        label="Copy link"
      />
      <IconButton label="Clear selection" icon={<X aria-hidden />} onClick={onClear} />
    </div>
  );
}
