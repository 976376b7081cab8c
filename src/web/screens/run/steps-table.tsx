/** Steps as a virtual table, because there may be thousands. */
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef } from 'react';
import { cx } from '../../ui/cx.ts';
import { Status } from '../../ui/status.tsx';
import { TableHead } from '../../ui/table-head.tsx';
import { Duration } from '../../ui/time.tsx';
import type { ShownStepRecord } from './facts.ts';

const ROW_PX = 36;
const TOUCH_ROW_PX = 48;

const columns = [
  { label: 'Step' },
  { label: 'Status', className: 'w-36' },
  { label: 'Member', className: 'w-32 max-md:hidden' },
  { label: 'Waits for', className: 'w-40 max-lg:hidden' },
  { label: 'Duration', className: 'w-20 max-sm:hidden' },
];

export function StepsTable({
  steps,
  selected,
  onSelect,
}: {
  steps: readonly ShownStepRecord[];
  selected: string | undefined;
  onSelect: (step_key: string) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const height = matchMedia('(pointer: coarse)').matches ? TOUCH_ROW_PX : ROW_PX;
  const rows = useVirtualizer({
    count: steps.length,
    getScrollElement: () => box.current,
    estimateSize: () => height,
    overscan: 8,
  });
  const at = steps.findIndex(({ step_key }) => step_key === selected);
  const { scrollToIndex } = rows;
  useEffect(() => {
    if (at !== -1) scrollToIndex(at, { align: 'auto' });
  }, [at, scrollToIndex]);
  const drawn = rows.getVirtualItems();
  const above = drawn[0]?.start ?? 0;
  const below = rows.getTotalSize() - (drawn.at(-1)?.end ?? 0);
  return (
    <div ref={box} className="scroll-y max-h-96">
      <table aria-rowcount={steps.length + 1} className="w-full table-fixed border-collapse">
        <TableHead columns={columns} className="sticky top-0 bg-ground" />
        <tbody>
          {above > 0 && <tr aria-hidden style={{ height: above }} />}
          {drawn.map(({ index }) => {
            const step = steps[index]!;
            return (
              <tr
                key={step.step_key}
                aria-rowindex={index + 2}
                style={{ height }}
                className={cx(
                  'border-line border-t [&>td]:truncate [&>td]:px-2',
                  step.step_key === selected ? 'bg-marked' : 'hover:bg-surface',
                )}
              >
                <th scope="row" className="truncate pr-2 pl-4 text-left font-normal">
                  <button
                    type="button"
                    aria-pressed={step.step_key === selected}
                    onClick={() => onSelect(step.step_key)}
                    title={step.step_key}
                    className="tap max-w-full truncate font-medium hover:underline"
                  >
                    {step.step_key}
                  </button>
                </th>
                <td>
                  <Status status={step.status} />
                </td>
                <td className="max-md:hidden">{step.member_id}</td>
                <td className="text-muted max-lg:hidden" title={step.waits_for ?? step.depends_on.join(', ')}>
                  {step.waits_for ?? (step.depends_on.slice(0, 20).join(', ') || '–')}
                </td>
                <td className="text-muted max-sm:hidden">
                  {step.started_at && <Duration from={step.started_at} to={step.ended_at} />}
                </td>
              </tr>
            );
          })}
          {below > 0 && <tr aria-hidden style={{ height: below }} />}
        </tbody>
      </table>
    </div>
  );
}
