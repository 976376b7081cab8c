/** The HTTP routes of the audit log. The log itself is part of the core. */
import type { Core, Feature } from '../feature.ts';
import { auditHandlers } from './http.ts';

export function openAudit({ audit }: Core): Feature {
  return { name: 'audit', routes: auditHandlers(audit) };
}
