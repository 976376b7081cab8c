/** Find in the output: the browser's own find sees only the rendered lines. */
import { CaseSensitive, ChevronDown, ChevronUp, Regex, X } from 'lucide-react';
import { type KeyboardEvent, type Ref, useEffect, useImperativeHandle, useRef } from 'react';
import type { Found } from '../../../transcript/find.ts';
import { IconButton } from '../../../ui/button.tsx';
import { cx } from '../../../ui/cx.ts';
import { inputClass } from '../../../ui/field.tsx';
import { isComposing } from '../../../ui/keys.ts';
import type { FindQuery } from './finder.ts';

export interface FindBarProps {
  query: FindQuery;
  onChange: (query: FindQuery) => void;
  found: Found;
  current: number | null;
  onStep: (direction: 1 | -1) => void;
  onClose: () => void;
  ref: Ref<{ focus(): void }>;
}

export function FindBar({ query, onChange, found, current, onStep, onClose, ref }: FindBarProps) {
  const input = useRef<HTMLInputElement>(null);
  const focus = () => {
    input.current?.focus();
    input.current?.select();
  };
  useImperativeHandle(ref, () => ({ focus }));
  useEffect(() => input.current?.focus(), []);
  const onKey = (event: KeyboardEvent) => {
    if (isComposing(event.nativeEvent)) return;
    if (event.key === 'Escape') onClose();
    else if (event.key === 'Enter') onStep(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const none = found.lines.length === 0;
  return (
    <search className="flex flex-wrap items-center gap-1 border-line border-b bg-surface px-3 py-1">
      <input
        ref={input}
        aria-label="Find in output"
        aria-invalid={found.error !== null || undefined}
        aria-describedby="found"
        value={query.text}
        onChange={(event) => onChange({ ...query, text: event.target.value })}
        onKeyDown={onKey}
        placeholder="Find"
        spellCheck={false}
        autoComplete="off"
        className={cx(inputClass, 'w-56! flex-initial font-mono text-sm')}
      />
      <IconButton
        label="Match case"
        aria-pressed={query.exact}
        icon={<CaseSensitive aria-hidden />}
        className={pressed(query.exact)}
        onClick={() => onChange({ ...query, exact: !query.exact })}
      />
      <IconButton
        label="Regular expression"
        aria-pressed={query.regex}
        icon={<Regex aria-hidden />}
        className={pressed(query.regex)}
        onClick={() => onChange({ ...query, regex: !query.regex })}
      />
      <IconButton
        label="Previous match (p)"
        icon={<ChevronUp aria-hidden />}
        disabled={none}
        onClick={() => onStep(-1)}
      />
      <IconButton
        label="Next match (n)"
        icon={<ChevronDown aria-hidden />}
        disabled={none}
        onClick={() => onStep(1)}
      />
      <output
        id="found"
        className={cx('min-w-32 flex-1 px-1 text-sm', found.error === null ? 'text-muted' : 'text-failed')}
      >
        {resultText(query, found, current)}
      </output>
      <IconButton label="Close find" icon={<X aria-hidden />} onClick={onClose} />
    </search>
  );
}

function pressed(on: boolean): string {
  return on ? 'bg-raised border-line-strong/60! text-text!' : '';
}

function resultText({ text }: FindQuery, { lines, error }: Found, current: number | null): string {
  if (error !== null) return error;
  if (text === '') return '';
  if (lines.length === 0) return 'No matching lines';
  const total = lines.length.toLocaleString('en');
  const unit = lines.length === 1 ? 'line' : 'lines';
  const at = current === null ? -1 : lines.indexOf(current);
  return at === -1 ? `${total} ${unit}` : `${(at + 1).toLocaleString('en')} of ${total} ${unit}`;
}
