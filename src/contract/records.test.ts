import { expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type { Agent } from '../domain/agent.ts';
import type { AuditRecord } from '../domain/audit.ts';
import type { EventRecord } from '../domain/event.ts';
import type { Changes, FileChange, FoundFiles } from '../domain/node.ts';
import type { HealthReport, NodeRecord, NodeSummary } from '../domain/node-record.ts';
import type { Session } from '../domain/session.ts';
import type { User } from '../domain/user.ts';
import type { userRecord } from './accounts.ts';
import type { auditRecord } from './admin.ts';
import type {
  agentRecord,
  changesRecord,
  eventRecord,
  fileChangeRecord,
  foundFilesRecord,
  sessionRecord,
} from './agents.ts';
import type { healthReport, nodeRecord, nodeSummary } from './nodes.ts';

type Wire<S extends z.ZodType> = z.output<S>;

test('records on the wire are the records of the domain, both ways', () => {
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
