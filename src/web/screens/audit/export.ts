/** Saves the filtered records as a file with one record per line. The token is sent in a header, never in a URL. */
import { all } from '../../api/client.ts';
import { save } from '../../ui/save.ts';
import { type AuditSearch, toQuery } from './records.ts';

export async function exportAudit(search: AuditSearch): Promise<void> {
  const records = await all('listAudit', { query: toQuery(search, Date.now()) });
  const blob = new Blob(
    records.map((record) => `${JSON.stringify(record)}\n`),
    { type: 'application/x-ndjson' },
  );
  save(blob, `audit-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}.ndjson`);
}
