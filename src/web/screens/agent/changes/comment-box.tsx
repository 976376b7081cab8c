/** A comment on one line or several: a draft, or one that waits to be sent. */
import { Pencil, Trash2 } from 'lucide-react';
import { type KeyboardEvent, type RefObject, useId, useLayoutEffect, useState } from 'react';
import { Button, IconButton } from '../../../ui/button.tsx';
import { useDraft } from '../../../ui/drafts.ts';
import { inputClass } from '../../../ui/field.tsx';
import { isComposing, isModEnter, MOD } from '../../../ui/keys.ts';
import { type Comment, describeLines } from './comments.ts';

/** Where the caret is in the text. */
export type Caret = 'end' | readonly [start: number, end: number];

export interface CommentBoxProps {
  /** The key of the draft. */
  name: string;
  /** The last line. */
  line: number;
  /** The lowest line that it can begin with. */
  first_min: number;
  before: Pick<Comment, 'first' | 'text'> | undefined;
  /** What has happened to the line since the box was opened. */
  note: string | null;
  /** Focuses the box if it is set. The box sets it if it has the focus when it is removed: its line may have moved. */
  caret: RefObject<Caret | null>;
  /** Refers to the field for the text. */
  field: RefObject<HTMLTextAreaElement | null>;
  /** `first`: undefined for a comment on one line. */
  onDone: (text: string, first: number | undefined) => void;
  onCancel: () => void;
}

export function CommentBox(props: CommentBoxProps) {
  const { name, line, first_min, before, note, caret, field, onDone, onCancel } = props;
  useKeptCaret(caret, field);
  const [draft, setDraft] = useDraft(`comment.${name}`);
  const [from_draft, setFrom] = useDraft(`comment.${name}.from`);
  // Editing starts from the saved comment, unless there is a draft.
  const [is_changed, setChanged] = useState(draft !== '');
  const text = is_changed ? draft : (before?.text ?? '');
  const from = from_draft || String(before?.first ?? line);
  const number = Number(from);
  const is_valid = Number.isInteger(number) && number >= first_min && number <= line;
  const first = is_valid && number < line ? number : undefined;
  const write = (next: string) => {
    setChanged(true);
    setDraft(next);
  };
  const leave = (then: () => void) => {
    setDraft('');
    setFrom('');
    then();
  };
  const is_ready = text.trim() !== '' && is_valid;
  const done = () => {
    if (is_ready) leave(() => onDone(text, first));
  };
  const onKey = (event: KeyboardEvent) => {
    if (isComposing(event.nativeEvent)) return;
    if (isModEnter(event.nativeEvent)) done();
    else if (event.key === 'Escape') leave(onCancel);
    else return;
    event.preventDefault();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys are those of the fields in it
    <div
      onKeyDown={onKey}
      className="flex flex-col gap-2 border-line border-y bg-surface p-3 font-sans text-base"
    >
      {note && (
        <p role="status" className="break-words text-muted text-sm">
          {note}
        </p>
      )}
      <textarea
        ref={field}
        dir="auto"
        aria-label={`Comment on ${describeLines({ line, ...(first !== undefined && { first }) })}`}
        rows={3}
        value={text}
        onChange={(event) => write(event.target.value)}
        placeholder="What should the agent do about this?"
        className={inputClass}
      />
      <div className="flex flex-wrap items-center gap-2">
        <Button variant="primary" disabled={!is_ready} title={`${MOD} Enter`} onClick={done}>
          Add comment
        </Button>
        <Button onClick={() => leave(onCancel)}>Cancel</Button>
        {first_min < line && <FromLine {...{ line, first_min, from, is_valid }} onFrom={setFrom} />}
      </div>
    </div>
  );
}

/** Keeps the focus and the caret of a field that is removed and added again. */
function useKeptCaret(caret: RefObject<Caret | null>, field: RefObject<HTMLTextAreaElement | null>): void {
  useLayoutEffect(() => {
    const own = field.current!;
    if (caret.current !== null) {
      const { length } = own.value;
      const [start, end] = caret.current === 'end' ? [length, length] : caret.current;
      caret.current = null;
      own.focus();
      own.setSelectionRange(start, end);
    }
    // React runs this before it removes the field. Another box may be about to open.
    return () => {
      if (caret.current === null && document.activeElement === own)
        caret.current = [own.selectionStart, own.selectionEnd];
    };
  }, [caret, field]);
}

function FromLine({
  line,
  first_min,
  from,
  is_valid,
  onFrom,
}: {
  line: number;
  first_min: number;
  from: string;
  is_valid: boolean;
  onFrom: (from: string) => void;
}) {
  const id = useId();
  return (
    <span className="flex flex-wrap items-center gap-x-2">
      <label htmlFor={id}>From line</label>
      <span className="w-20">
        <input
          id={id}
          type="number"
          inputMode="numeric"
          min={first_min}
          max={line}
          value={from}
          aria-invalid={!is_valid}
          aria-describedby={is_valid ? undefined : `${id}-why`}
          onChange={(event) => onFrom(event.target.value)}
          className={inputClass}
        />
      </span>
      <span>to line {line}</span>
      {!is_valid && (
        <span id={`${id}-why`} role="alert" className="text-failed text-sm">
          Enter a line from {first_min} to {line}.
        </span>
      )}
    </span>
  );
}

export interface CommentViewProps {
  comment: Comment;
  note?: string;
  onEdit?: () => void;
  onDelete: () => void;
}

export function CommentView({ comment, note, onEdit, onDelete }: CommentViewProps) {
  const shown_note = note ?? (comment.first !== undefined && `on ${describeLines(comment)}`);
  return (
    <div className="flex items-start gap-2 border-line border-y bg-surface px-3 py-2 font-sans text-base">
      <div className="min-w-0 flex-1">
        {shown_note && <p className="text-muted text-sm">{shown_note}</p>}
        <p className="whitespace-pre-wrap break-words">{comment.text}</p>
      </div>
      {onEdit && <IconButton label="Edit comment" icon={<Pencil aria-hidden />} onClick={onEdit} />}
      <IconButton label="Delete comment" icon={<Trash2 aria-hidden />} onClick={onDelete} />
    </div>
  );
}
