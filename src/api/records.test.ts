import { expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type { EventRecord } from '../core/event.ts';
import type { Changes, FileChange, FoundFiles } from '../core/node.ts';
import type { Session } from '../core/session.ts';
import type { userRecord } from '../features/accounts/contract/accounts.ts';
import type { auditRecord } from '../features/accounts/contract/admin.ts';
import type { User } from '../features/accounts/rules.ts';
import type {
  agentRecord,
  changesRecord,
  eventRecord,
  fileChangeRecord,
  foundFilesRecord,
  sessionRecord,
} from '../features/agents/contract.ts';
import type { Agent } from '../features/agents/rules.ts';
import type { AuditRecord } from '../features/audit/rules/audit.ts';
import type { healthReport, nodeRecord, nodeSummary } from '../features/nodes/contract.ts';
import type { HealthReport, NodeRecord, NodeSummary } from '../features/nodes/rules.ts';

type Wire<S extends z.ZodType> = z.output<S>;

test('API records and domain records have the same types', () => {
  expectTypeOf<Wire<typeof agentRecord>>().toEqualTypeOf<Agent>();
  expectTypeOf<Wire<typeof sessionRecord>>().toEqualTypeOf<Session>();
  expectTypeOf<Wire<typeof eventRecord>>().toEqualTypeOf<EventRecord>();
  expectTypeOf<Wire<typeof changesRecord>>().toEqualTypeOf<Changes>();
  expectTypeOf<Wire<typeof fileChangeRecord>>().toEqualTypeOf<FileChange>();
  expectTypeOf<Wire<typeof foundFilesRecord>>().toEqualTypeOf<FoundFiles>();
  expectTypeOf<Wire<typeof nodeRecord>>().toEqualTypeOf<NodeRecord>();
  expectTypeOf<Wire<typeof nodeSummary>>().toEqualTypeOf<NodeSummary>();
  expectTypeOf<Wire<typeof healthReport>>().toEqualTypeOf<HealthReport>();
  expectTypeOf<Wire<typeof userRecord>>().toEqualTypeOf<User>();
  expectTypeOf<Wire<typeof auditRecord>>().toEqualTypeOf<AuditRecord>();
});
