/** A request where its card does not fit, as a link that opens it on the whole screen of a phone. */
import { Link } from '@tanstack/react-router';
import { TriangleAlert } from 'lucide-react';
import { type ReactNode, useId } from 'react';
import { buttonClass } from '../ui/button.tsx';
import { useSidewaysPhone } from '../ui/media.ts';
import { CardFrame } from './card-frame.tsx';
import { linkLabels, linkNames, type WaitingItem } from './queue.ts';
import { waitingText } from './text.ts';
import { useWaiting } from './use-waiting.ts';

/**
 * Shows the card, or on a phone on its side a link: in a conversation, a card may not fit between the header and the prompt
 * field. `id`: of its item.
 */
export function CardOrLink({ id, children }: { id: string; children: ReactNode }) {
  return useSidewaysPhone() ? <LinkIfOpen id={id}>{children}</LinkIfOpen> : children;
}

function LinkIfOpen({ id, children }: { id: string; children: ReactNode }) {
  const { open } = useWaiting();
  const item = open.find((one) => one.id === id);
  return item ? <CardLink item={item} /> : children;
}

export function CardLink({ item }: { item: WaitingItem }) {
  const id = useId();
  return (
    <CardFrame card={item.id} open answered={false} aria-labelledby={id}>
      <div className="flex min-w-0 items-center gap-3">
        <TriangleAlert aria-hidden className="size-4 shrink-0 text-needs" />
        <span id={id} dir="auto" className="min-w-0 flex-1 truncate text-left font-medium">
          {waitingText(item)}
        </span>
        <Link
          to="/approvals"
          search={{ [linkNames[item.kind]]: item.id }}
          className={buttonClass('primary', 'shrink-0')}
        >
          {linkLabels[item.kind]}
        </Link>
      </div>
    </CardFrame>
  );
}
