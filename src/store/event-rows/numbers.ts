/**
 * The numbers that rows of events store for types, streams and flags. Databases and segments contain them, so never
 * change them.
 */
import type { EventType, StreamName } from '../../core/event.ts';

const types = { output: 1, status: 2, acp_event: 3, error: 4 } as const satisfies Record<EventType, number>;
const streams = { stdout: 1, stderr: 2 } as const satisfies Record<StreamName, number>;

/** Bits of `events.flags`. */
export const PARTIAL = 1;
export const BINARY = 2;

const typeNames = byNumber(types);
const streamNames = byNumber(streams);

export function typeNumber(type: EventType): number {
  return types[type];
}

export function typeName(number: number): EventType {
  return typeNames[number]!;
}

export function streamNumber(stream: StreamName): number {
  return streams[stream];
}

/** Null for 0, the number of events without a stream. */
export function streamName(number: number): StreamName | null {
  return streamNames[number] ?? null;
}

function byNumber<Name extends string>(numbers: Record<Name, number>): Name[] {
  const names: Name[] = [];
  for (const [name, number] of Object.entries(numbers) as [Name, number][]) names[number] = name;
  return names;
}
