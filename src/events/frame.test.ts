import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { StoredEvent } from '../store/event-rows/read.ts';
import { eventRecord, frameRecord, frameText } from './frame.ts';

const output = fc.record({
  seq: fc.nat(),
  ts_ms: fc.nat(),
  type: fc.constant('output' as const),
  session_id: fc.constant('ses_1'),
  stream: fc.constantFrom('stdout' as const, 'stderr' as const),
  partial: fc.boolean(),
  data: fc.oneof(fc.string({ unit: 'grapheme' }), fc.uint8Array()),
});
const other = fc.record({
  seq: fc.nat(),
  ts_ms: fc.nat(),
  type: fc.constantFrom('status' as const, 'error' as const, 'acp_event' as const),
  session_id: fc.constantFrom(null, 'ses_1'),
  stream: fc.constant(null),
  partial: fc.constant(false),
  data: fc
    .dictionary(
      fc.string().filter((key) => !/^\d+$/.test(key)),
      fc.jsonValue(),
    )
    .map((fields) => JSON.stringify(fields)),
});

test('a record has the fields of its frame, in the same order', () => {
  fc.assert(
    fc.property(fc.oneof(output, other), (event: StoredEvent) => {
      const frame = Buffer.from(frameText('agt_1', event.seq, event));
      expect(JSON.stringify(eventRecord('agt_1', event))).toBe(JSON.stringify(frameRecord(frame)));
    }),
  );
});
