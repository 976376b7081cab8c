/** The header of a table. Columns of buttons have a label for screen readers only. */
import { cx } from './cx.ts';

export interface Column {
  label: string;
  /** Its width, and the screens on which it is visible. */
  className?: string;
  unseen?: boolean;
}

export function TableHead({ columns, className }: { columns: readonly Column[]; className?: string }) {
  return (
    <thead className={cx('text-left text-muted text-xs', className)}>
      <tr className="border-line border-b [&>th:first-child]:pl-4 [&>th]:px-2 [&>th]:py-1 [&>th]:font-medium">
        {columns.map((column) => (
          <th key={column.label} scope="col" className={column.className}>
            {column.unseen ? <span className="sr-only">{column.label}</span> : column.label}
          </th>
        ))}
      </tr>
    </thead>
  );
}
