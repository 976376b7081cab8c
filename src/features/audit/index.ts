/** The audit log over HTTP; the log itself belongs to the core. */
import type { Core, Feature } from '../feature.ts';
import { auditHandlers } from './http.ts';

export function openAudit({ audit }: Core): Feature {
  return { name: 'audit', routes: auditHandlers(audit) };
}
