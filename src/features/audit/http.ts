/** HTTP handlers of the audit log (root). */
import type { Handlers } from '../../server/call.ts';
import { asList } from '../../server/list.ts';
import type { Audit } from './service.ts';

export function auditHandlers(audit: Audit): Pick<Handlers, 'listAudit' | 'verifyAudit'> {
  return {
    listAudit: async ({ query }) => {
      const filter = { ...query, since: millis(query.since), until: millis(query.until) };
      return asList(query, await audit.list(filter, query));
    },
    verifyAudit: ({ query, signal }) => audit.verify(signal, query.head),
  };
}

function millis(time: string | undefined): number | undefined {
  return time === undefined ? undefined : Date.parse(time);
}
