/** An answered permission review in the line of its tool call. */
import { type RefObject, useLayoutEffect, useRef } from 'react';
import type { Permission } from '../../../../acp/transcript/items.ts';
import { escapeHidden } from '../../../../core/visible.ts';
import { UnsentDraft } from '../../../reviews/reject.tsx';
import { viewOfItem } from '../../../reviews/review-view.ts';
import { table } from '../../../table.ts';
import { tookText } from '../../../ui/time.tsx';
import { takeLeftCard } from '../../../waiting/focus.ts';

const verbs = table({
  allow_once: 'allowed',
  allow_always: 'always allowed',
  reject_once: 'rejected',
  reject_always: 'always rejected',
});

export function PermissionNote({ item }: { item: Permission }) {
  const chosen = item.outcome?.type === 'selected' ? item.outcome.option : null;
  return (
    <span
      className="truncate text-muted"
      title={chosen ? `Chosen option: ${escapeHidden(chosen.name)}` : undefined}
    >
      {verb(item)}
      <span className="max-sm:sr-only">{whoAndWhen(item)}</span>
    </span>
  );
}

/** An option of an unknown kind is named instead. */
function verb({ outcome }: Permission): string {
  if (outcome?.type !== 'selected') return 'turn cancelled';
  const { option, option_id } = outcome;
  return verbs[option?.kind ?? ''] ?? `${escapeHidden(option?.name ?? option_id)}, chosen`;
}

/** ` by ana after 11 s`. */
function whoAndWhen({ answered_by, ts, settled_ts }: Permission): string {
  const by = answered_by === null ? 'automatically' : `by ${answered_by}`;
  return ` ${by}${settled_ts === null ? '' : ` after ${tookText(settled_ts - ts)}`}`;
}

/** What the user wrote to reject a review that was answered without it. */
export function UnsentReply({ item, agent_id }: { item: Permission; agent_id: string }) {
  return <UnsentDraft review={viewOfItem(item, agent_id, undefined)} />;
}

/** The focus stays where a card was when the card gives way to a note. */
export function useFocusAfterCard(permissions: readonly Permission[]): RefObject<HTMLButtonElement | null> {
  const ref = useRef<HTMLButtonElement>(null);
  const last = permissions.at(-1)?.review_id;
  useLayoutEffect(() => {
    if (last !== undefined && takeLeftCard(last)) ref.current?.focus({ preventScroll: true });
  }, [last]);
  return ref;
}
