/** The timeline as a table: what the agent did, when, for how long, and how it ended. */
import { Link } from '@tanstack/react-router';
import { CircleAlert, type LucideIcon, MessageSquare, Play, TriangleAlert, Wrench } from 'lucide-react';
import { memo, useState } from 'react';
import { Button } from '../../../ui/button.tsx';
import { cx } from '../../../ui/cx.ts';
import { StatusIcon, sentenceCase } from '../../../ui/status.tsx';
import { TableHead } from '../../../ui/table-head.tsx';
import { Ago, Clock, tookText } from '../../../ui/time.tsx';
import type { Entry, Lane } from './entries.ts';
import { isMoment } from './words.ts';

/** Rows are added by this number, from the newest to the oldest. */
const SHOWN = 200;

const columns = [
  { label: 'Turn', className: 'w-14 max-sm:hidden' },
  { label: 'What', className: 'max-sm:pl-4!' },
  { label: 'Start', className: 'w-40 max-sm:hidden' },
  { label: 'Duration', className: 'w-24 max-sm:w-20' },
  { label: 'Result', className: 'w-64 max-sm:w-28' },
];

/** In the order of the bars: the newest entry is last. */
export const Table = memo(function Table({
  agent_id,
  entries,
}: {
  agent_id: string;
  entries: readonly Entry[];
}) {
  const [shown, setShown] = useState(SHOWN);
  const hidden = Math.max(0, entries.length - shown);
  return (
    <>
      {hidden > 0 && (
        <div className="flex justify-center p-2">
          <Button onClick={() => setShown(shown + SHOWN)}>
            Show {Math.min(SHOWN, hidden)} earlier of {hidden}
          </Button>
        </div>
      )}
      <table className="w-full table-fixed text-left">
        <caption className="sr-only">Where the agent’s time went</caption>
        <TableHead columns={columns} />
        <tbody>
          {entries.slice(hidden).map((entry) => (
            <Row key={entry.key} agent_id={agent_id} entry={entry} />
          ))}
        </tbody>
      </table>
    </>
  );
});

const kinds: Record<Lane, { icon: LucideIcon; color: string; name: string }> = {
  sessions: { icon: Play, color: 'text-muted', name: 'session' },
  turns: { icon: MessageSquare, color: 'text-muted', name: 'turn' },
  tools: { icon: Wrench, color: 'text-muted', name: 'tool call' },
  waits: { icon: TriangleAlert, color: 'text-needs', name: 'wait' },
  warnings: { icon: CircleAlert, color: 'text-warning', name: 'warning' },
};

function Row({ agent_id, entry }: { agent_id: string; entry: Entry }) {
  const { label, lane, turn, seq, from, to, result } = entry;
  const { icon: Icon, color, name } = kinds[lane];
  const is_within_turn = turn !== null && lane !== 'turns';
  return (
    <tr className="h-8 border-line border-b pointer-coarse:h-11 [&>td]:px-2">
      <td className="pl-4! text-muted tabular-nums max-sm:hidden">{turn ?? '–'}</td>
      <th scope="row" className={cx('px-2 font-normal max-sm:pl-4', is_within_turn && 'pl-6! max-sm:pl-9!')}>
        <Link
          to="/agents/$agent_id/$tab"
          params={{ agent_id, tab: 'events' }}
          search={{}}
          hash={`e${seq}`}
          preload={false}
          title={`${label} (event #${seq})`}
          className="flex min-w-0 items-center gap-1.5 hover:underline max-sm:py-1"
        >
          <Icon aria-hidden className={cx('size-3.5 shrink-0', color)} />
          <span className="sr-only">{name}:</span>
          <span
            className={cx(
              'max-sm:line-clamp-2 max-sm:wrap-anywhere sm:truncate',
              lane === 'turns' && 'font-medium',
            )}
          >
            {label}
          </span>
        </Link>
      </th>
      <td className="max-sm:hidden">
        <Clock at={from * 1000} />
      </td>
      <td className="whitespace-nowrap tabular-nums">
        {to === null ? <Ago at={from * 1000} suffix="" /> : isMoment(lane) ? '–' : tookText(to - from)}
      </td>
      <td>
        {result && (
          <span className="flex min-w-0 items-center gap-1.5 max-sm:py-1" title={result.text}>
            <StatusIcon status={result.status} />
            <span
              className={cx(
                'max-sm:wrap-anywhere sm:truncate',
                result.status === 'failed' ? 'text-failed' : 'text-muted',
              )}
            >
              {/* An answer is in the agent’s words. */}
              {lane === 'waits' ? result.text : sentenceCase(result.text)}
            </span>
          </span>
        )}
      </td>
    </tr>
  );
}
