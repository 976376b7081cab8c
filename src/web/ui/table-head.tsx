/** The head of a table: a name over each column, those of buttons for ears only. */
import { cx } from './cx.ts';

export interface Column {
  label: string;
  /** How wide it is, and on which screens it is there. */
  className?: string;
  unseen?: boolean;
}

export function TableHead({ columns, className }: { columns: readonly Column[]; className?: string }) {
  return (
    <thead className={cx('text-left text-muted text-sm', className)}>
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
