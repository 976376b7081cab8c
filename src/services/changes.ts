/** Whether an update changes anything: one that does not is answered, and leaves no trace. */

/** Whether a row would be another one with these values. JSON columns are compared as text. */
export function differs<Row extends object>(row: Row, values: Partial<Row>): boolean {
  return Object.entries(values).some(([column, value]) => row[column as keyof Row] !== value);
}
