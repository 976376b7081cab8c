/** Detects whether an update would change a row. An update that changes nothing succeeds and leaves no trace. */

/** Whether any of `values` differs from the row. JSON columns are compared as text. */
export function differs<Row extends object>(row: Row, values: Partial<Row>): boolean {
  return Object.entries(values).some(([column, value]) => row[column as keyof Row] !== value);
}
