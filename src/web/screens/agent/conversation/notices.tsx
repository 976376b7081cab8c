/** Lines about the conversation: how a turn or a process ended, notices of the service, and unknown updates. */
import { CircleAlert, CircleX, Info } from 'lucide-react';
import type { Notice, StatusChange, Stop, Unknown } from '../../../../acp/transcript/items.ts';
import { escapeHidden } from '../../../../core/visible.ts';
import { RawView } from '../../../reviews/raw-view.tsx';
import { noticeTone, stopText, type Tone } from '../../../transcript/status-text.ts';
import { cx } from '../../../ui/cx.ts';
import { Status } from '../../../ui/status.tsx';
import { spent } from './elapsed.tsx';

const tones: Record<Tone, string> = { plain: 'text-muted', warning: 'text-warning', failure: 'text-failed' };
const icons = { plain: Info, warning: CircleAlert, failure: CircleX };

export function StopLine({ item }: { item: Stop }) {
  const { text, tone } = stopText(item.reason);
  return (
    <p className={cx('flex items-center gap-2 text-sm', tones[tone])}>
      <span>
        {escapeHidden(text)}
        {item.seconds !== null && ` · ${spent(item.seconds)}`}
      </span>
      <span aria-hidden className="h-px flex-1 bg-line" />
    </p>
  );
}

export function StatusLine({ item }: { item: StatusChange }) {
  const how = [
    item.exit_code !== null && `exit ${item.exit_code}`,
    item.exit_signal,
    item.reason?.replaceAll('_', ' '),
  ];
  return (
    <p className="flex items-center gap-2 text-muted text-sm">
      <span>process</span>
      <Status status={item.status} />
      <span>{how.filter(Boolean).join(' · ')}</span>
    </p>
  );
}

export function NoticeLine({ item }: { item: Notice }) {
  const tone = noticeTone(item.code);
  const Icon = icons[tone];
  return (
    <p className={cx('flex min-w-0 gap-1.5', tones[tone])}>
      <Icon aria-hidden className="mt-0.5 size-4 shrink-0" />
      <span className="min-w-0 whitespace-pre-wrap break-words">{escapeHidden(item.text || item.code)}</span>
    </p>
  );
}

export function UnknownRow({ item }: { item: Unknown }) {
  return (
    <div>
      <RawView
        label={`unrecognized update: ${escapeHidden(item.label)}`}
        value={item.raw.value}
        truncated={item.raw.truncated}
      />
      {item.too_large !== null && (
        <p className="text-muted text-sm">Too large to show ({item.too_large} bytes).</p>
      )}
    </div>
  );
}
