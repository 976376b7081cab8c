/** Shows whether the page is live, with the texts that the specification fixes. After a minute it offers a reload. */
import { Circle, CircleCheck, CloudOff, LoaderCircle, type LucideIcon } from 'lucide-react';
import { useStreams } from '../live/streams.ts';
import type { BadgeState } from '../streams/badge.ts';
import { cx } from '../ui/cx.ts';

const looks: Record<BadgeState, { icon: LucideIcon; color: string }> = {
  idle: { icon: Circle, color: 'text-muted' },
  connecting: { icon: LoaderCircle, color: 'text-muted' },
  connected: { icon: CircleCheck, color: 'text-completed' },
  reconnecting: { icon: LoaderCircle, color: 'text-warning' },
  disconnected: { icon: CloudOff, color: 'text-failed' },
};

export function Badge() {
  const { badge, text, offer_refresh } = useStreams();
  const { icon: Icon, color } = looks[badge];
  return (
    <span className="flex min-w-0 flex-wrap items-center gap-x-2 text-sm">
      {/* As wide as its longest text, so that nothing moves when it changes. */}
      <span
        role="status"
        data-badge
        className={cx('inline-flex w-44 items-center gap-1 whitespace-nowrap', color)}
      >
        <Icon aria-hidden className="size-3.5 shrink-0" />
        <span>{text}</span>
      </span>
      {offer_refresh && (
        <button type="button" onClick={() => location.reload()} className="tap text-accent underline">
          Refresh
        </button>
      )}
    </span>
  );
}
