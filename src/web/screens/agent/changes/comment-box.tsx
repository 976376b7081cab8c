/** A comment on a line: a draft, or one that waits to be sent. */
import { Pencil, Trash2 } from 'lucide-react';
import { type KeyboardEvent, useState } from 'react';
import { Button, IconButton } from '../../../ui/button.tsx';
import { useDraft } from '../../../ui/drafts.ts';
import { inputClass } from '../../../ui/field.tsx';
import { MOD } from '../../../ui/keys.ts';
import type { Comment } from './comments.ts';

export interface CommentBoxProps {
  /** The key of the draft. */
  name: string;
  line: number;
  before: string;
  onDone: (text: string) => void;
  onCancel: () => void;
}

export function CommentBox({ name, line, before, onDone, onCancel }: CommentBoxProps) {
  const [draft, setDraft] = useDraft(`comment.${name}`);
  // Editing starts from the saved comment, unless there is a draft.
  const [is_changed, setChanged] = useState(draft !== '');
  const text = is_changed ? draft : before;
  const write = (next: string) => {
    setChanged(true);
    setDraft(next);
  };
  const leave = (then: () => void) => {
    setDraft('');
    then();
  };
  const done = () => {
    if (text.trim() !== '') leave(() => onDone(text));
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) done();
    else if (event.key === 'Escape') leave(onCancel);
    else return;
    event.preventDefault();
  };
  return (
    <div className="flex flex-col gap-2 border-line border-y bg-surface p-3 font-sans text-base">
      <textarea
        aria-label={`Comment on line ${line}`}
        // biome-ignore lint/a11y/noAutofocus: it was opened to write in it
        autoFocus
        rows={3}
        value={text}
        onChange={(event) => write(event.target.value)}
        onKeyDown={onKey}
        placeholder="What should the agent do about this line?"
        className={inputClass}
      />
      <div className="flex flex-wrap gap-2">
        <Button variant="primary" disabled={text.trim() === ''} title={`${MOD} Enter`} onClick={done}>
          Add comment
        </Button>
        <Button onClick={() => leave(onCancel)}>Cancel</Button>
      </div>
    </div>
  );
}

export interface CommentViewProps {
  comment: Comment;
  note?: string;
  onEdit?: () => void;
  onDelete: () => void;
}

export function CommentView({ comment, note, onEdit, onDelete }: CommentViewProps) {
  return (
    <div className="flex items-start gap-2 border-line border-y bg-surface px-3 py-2 font-sans text-base">
      <div className="min-w-0 flex-1">
        {note && <p className="text-muted text-sm">{note}</p>}
        <p className="whitespace-pre-wrap break-words">{comment.text}</p>
      </div>
      {onEdit && <IconButton label="Edit comment" icon={<Pencil aria-hidden />} onClick={onEdit} />}
      <IconButton label="Delete comment" icon={<Trash2 aria-hidden />} onClick={onDelete} />
    </div>
  );
}
