/** Lines about the conversation: how a turn or a process ended, notices of the service, and unknown updates. */
import { Link } from '@tanstack/react-router';
import { CircleAlert, CircleX, Info } from 'lucide-react';
import { Fragment, type ReactNode } from 'react';
import type { Notice, StatusChange, Stop, Unknown } from '../../../../acp/transcript/items.ts';
import { escapeHidden } from '../../../../core/visible.ts';
import { isFinal } from '../../../../features/agents/rules.ts';
import { Counts } from '../../../reviews/diff-view.tsx';
import { RawView } from '../../../reviews/raw-view.tsx';
import type { AgentTab } from '../../../router.tsx';
import { noticeTone, stopText, type Tone } from '../../../transcript/status-text.ts';
import { cx } from '../../../ui/cx.ts';
import { Status } from '../../../ui/status.tsx';
import { TimeOfDay, tookText } from '../../../ui/time.tsx';
import { compactCount } from '../../../ui/usage.ts';

const tones: Record<Tone, string> = { plain: 'text-muted', warning: 'text-warning', failure: 'text-failed' };
const icons = { plain: Info, warning: CircleAlert, failure: CircleX };

/** How a turn ended, and what it took. */
export function StopLine({ item, agent_id }: { item: Stop; agent_id: string }) {
  const { text, tone } = stopText(item.reason);
  const { seconds, tools, added, removed, tokens } = item;
  const is_plain = item.reason === 'end_turn';
  const facts = [
    seconds !== null && tookText(seconds),
    tools > 0 && (
      <ViewLink agent_id={agent_id} tab="timeline" title="Open the timeline">
        {tools} {tools === 1 ? 'tool' : 'tools'}
      </ViewLink>
    ),
    added + removed > 0 && (
      <ViewLink agent_id={agent_id} tab="changes" title="Open the changes">
        <Counts added={added} removed={removed} />
      </ViewLink>
    ),
    tokens !== null && <span title={`${tokens.toLocaleString()} tokens`}>{compactCount(tokens)} tokens</span>,
  ].filter((fact) => fact !== false);
  return (
    <div className="flex min-h-6 items-center gap-3 text-muted text-sm">
      <p className="flex min-w-0 flex-wrap items-center gap-x-1.5">
        <span className={is_plain ? 'sr-only' : tones[tone]}>{escapeHidden(text)}</span>
        {!is_plain && <span aria-hidden>·</span>}
        <TimeOfDay ts={item.ts} />
        {facts.map((fact, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the facts of an ended turn do not change
          <Fragment key={at}>
            <span aria-hidden>·</span>
            {fact}
          </Fragment>
        ))}
      </p>
      <span aria-hidden className="h-px flex-1 bg-line" />
    </div>
  );
}

function ViewLink({
  agent_id,
  tab,
  title,
  children,
}: {
  agent_id: string;
  tab: AgentTab;
  title: string;
  children: ReactNode;
}) {
  return (
    <Link
      to="/agents/$agent_id/$tab"
      params={{ agent_id, tab }}
      search={{}}
      title={title}
      className="inline-flex items-center whitespace-nowrap underline decoration-line-strong underline-offset-2 hover:decoration-current pointer-coarse:min-h-11 pointer-coarse:px-1"
    >
      {children}
    </Link>
  );
}

/** The agent's process was started again, or ended. */
export function StatusLine({ item }: { item: StatusChange }) {
  const how = [
    item.exit_code !== null && `exit ${item.exit_code}`,
    item.exit_signal,
    item.reason?.replaceAll('_', ' '),
  ];
  return (
    <p className="flex min-h-6 flex-wrap items-center gap-x-2 text-muted text-sm">
      <span>Agent</span>
      {isFinal(item.status) ? <Status status={item.status} /> : <span>started again</span>}
      <span>{how.filter(Boolean).join(' · ')}</span>
      <TimeOfDay ts={item.ts} />
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
        label={`Unrecognized update: ${escapeHidden(item.label)}`}
        value={item.raw.value}
        truncated={item.raw.truncated}
      />
      {item.too_large !== null && (
        <p className="text-muted text-sm">Too large to show ({item.too_large} bytes).</p>
      )}
    </div>
  );
}
