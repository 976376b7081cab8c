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

/** `compact`: only the icon, unless the page is disconnected. Screen readers read the same text. */
export function Badge({ compact = false }: { compact?: boolean }) {
  const { badge, text, offer_refresh } = useStreams();
  const { icon: Icon, color } = looks[badge];
  const is_short = compact && badge !== 'disconnected';
  return (
    <span className={cx('flex min-w-0 items-center gap-x-2 text-sm', !compact && 'flex-wrap')}>
      {/* As wide as its longest text, so that nothing moves when it changes. */}
      <span
        role="status"
        data-badge
        aria-label={compact ? text : undefined}
        className={cx('inline-flex items-center gap-1 whitespace-nowrap', !compact && 'w-44', color)}
      >
        <Icon aria-hidden className={cx('shrink-0', compact ? 'size-4' : 'size-3.5')} />
        <span className={is_short ? 'sr-only' : ''}>{text}</span>
      </span>
      {offer_refresh && (
        <button type="button" onClick={() => location.reload()} className="tap text-accent underline">
          Refresh
        </button>
      )}
    </span>
  );
}
