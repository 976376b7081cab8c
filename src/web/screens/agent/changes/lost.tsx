/** Comments on lines that the diff of their file does not show, and drafts: their text must stay within reach. */
import { useDraft } from '../../../ui/drafts.ts';
import { CommentView } from './comment-box.tsx';
import { type Comment, describeLines, withComment } from './comments.ts';
import type { Place } from './parsed.ts';
import type { ChangeComments } from './stored.ts';

const LOST = 'not shown in the diff';

export function LostComments({
  comments,
  onComments,
}: {
  comments: readonly Comment[];
  onComments: ChangeComments;
}) {
  return comments.map((comment) => (
    <CommentView
      key={`${comment.side}${comment.line}`}
      comment={comment}
      note={`on ${describeLines(comment)}, ${LOST}`}
      onDelete={() => onComments((list) => withComment(list, { ...comment, text: '' }))}
    />
  ));
}

/** A comment that was being written when its box was closed. `name`: the key of its draft. */
export function Draft({
  name,
  path,
  place,
  is_lost,
  onEdit,
}: {
  name: string;
  path: string;
  place: Place;
  is_lost: boolean;
  onEdit: () => void;
}) {
  const [text, setText] = useDraft(`comment.${name}`);
  const [, setFrom] = useDraft(`comment.${name}.from`);
  return (
    <CommentView
      comment={{ path, ...place, code: '', text }}
      note={`draft on ${describeLines(place)}${is_lost ? `, ${LOST}` : ', not added yet'}`}
      onEdit={onEdit}
      onDelete={() => {
        setText('');
        setFrom('');
      }}
    />
  );
}
