/**
 * Events as SSE frames and as records, `interface.md` §3.1. Output is stored as raw bytes; here it becomes JSON. A batch
 * that is valid UTF-8 is never decoded: as Latin-1 every byte is one character, `JSON.stringify` leaves those above 0x7f alone, and
 * writing the result as Latin-1 gives the same UTF-8 back.
 */
import { isUtf8 } from 'node:buffer';
import { allUtf8 } from '../base/utf8.ts';
import { type EventRecord, type EventType, eventTypes } from '../domain/event.ts';
import type { Appended, IngestBatch } from '../store/store.ts';

/** The first block of every stream. */
export const retryFrame = Buffer.from('retry: 1000\n\n');

/** `events.type` counts from 1 in the order of `eventTypes`; streams from 1 in the order of `streamNames`. */
export const OUTPUT = 1;
export const STATUS = 2;
const streamName = ['', 'stdout', 'stderr'];

export function typeNumber(type: EventType): number {
  return eventTypes.indexOf(type) + 1;
}

/** A stored event; `data` is output's text, or its bytes when they are not UTF-8, else the frame's further fields as JSON. */
export interface StoredEvent {
  seq: number;
  ts_ms: number;
  type: number;
  session_id: string | null;
  /** 0 for none. */
  stream: number;
  partial: boolean;
  data: string | Uint8Array;
}

/** Ids and field names need no escapes by construction. */
export function frameText(agent_id: string, event: StoredEvent): string {
  const session = event.session_id === null ? 'null' : `"${event.session_id}"`;
  const type = eventTypes[event.type - 1]!;
  const start = `id: ${event.seq}\nevent: ${type}\ndata: {"type":"${type}","agent_id":"${agent_id}","session_id":${session},"seq":${event.seq},"ts":${event.ts_ms / 1000}`;
  if (event.type === OUTPUT) {
    const partial = event.partial ? ',"partial":true' : '';
    return `${start},"stream":"${streamName[event.stream]}","data":${dataText(event.data)}${partial}}\n\n`;
  }
  const fields = event.data as string;
  return fields === '{}' ? `${start}}\n\n` : `${start},${fields.slice(1)}\n\n`;
}

export function frame(agent_id: string, event: StoredEvent): Buffer {
  return Buffer.from(frameText(agent_id, event));
}

/** All frames of a committed batch of output. */
export function batchFrames(batch: IngestBatch, appended: Appended): Buffer {
  const bytes = asBuffer(batch.bytes);
  const start = `\nevent: output\ndata: {"type":"output","agent_id":"${batch.agent_id}","session_id":"${batch.session_id}","seq":`;
  const middle = `,"ts":${batch.ts_ms / 1000},"stream":"${batch.stream}","data":`;
  const sound = allUtf8(bytes, batch.ends);
  // Written piece by piece: put together as one string first, large events would be copied twice more.
  const parts: string[] = [];
  let from = 0;
  for (let i = 0; i < batch.ends.length; i++) {
    const seq = appended.first_seq + i;
    const end = batch.ends[i]!;
    const data = bytes.subarray(from, end);
    parts.push(`id: ${seq}${start}${seq}${middle}`);
    parts.push(sound || isUtf8(data) ? JSON.stringify(data.toString('latin1')) : dataText(data));
    parts.push(batch.partial[i] ? ',"partial":true}\n\n' : '}\n\n');
    from = end;
  }
  return latin1Bytes(parts);
}

/** Characters up to 0xff, a byte each. */
function latin1Bytes(parts: readonly string[]): Buffer {
  const bytes = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) at += bytes.write(part, at, 'latin1');
  return bytes;
}

function dataText(data: string | Uint8Array): string {
  if (typeof data === 'string') return JSON.stringify(data);
  return `"${asBuffer(data).toString('base64')}","encoding":"base64"`;
}

export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function record(agent_id: string, event: StoredEvent): EventRecord {
  return frameRecord(frame(agent_id, event));
}

/** The record in one frame. */
export function frameRecord(bytes: Buffer): EventRecord {
  const at = bytes.indexOf('\ndata: ');
  return JSON.parse(bytes.toString('utf8', at + 7, bytes.length - 2)) as EventRecord;
}

/** Cuts a run of frames into single ones: no frame holds an empty line. */
export function* splitFrames(bytes: Buffer): Generator<Buffer> {
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf('\n\n', from) + 2;
    yield bytes.subarray(from, end);
    from = end;
  }
}

/** The sequence number in a frame's `id` line. */
export function frameSeq(bytes: Buffer): number {
  return Number(bytes.toString('latin1', 4, bytes.indexOf('\n')));
}

export function frameType(bytes: Buffer): EventType {
  const at = bytes.indexOf('\n') + '\nevent: '.length;
  return bytes.toString('latin1', at, bytes.indexOf('\n', at)) as EventType;
}

export function heartbeatFrame(position: number, now_ms: number): Buffer {
  const ts = Math.floor(now_ms / 1000);
  return Buffer.from(`id: ${position}\nevent: heartbeat\ndata: {"type":"heartbeat","ts":${ts}}\n\n`);
}

/** An error that belongs to one connection and is not stored; `position` is where the client goes on from. */
export function connectionError(
  position: number,
  now_ms: number,
  fields: { code: string; error: string; [detail: string]: unknown },
  agent_id?: string,
): Buffer {
  const base = agent_id === undefined ? {} : { agent_id, session_id: null, seq: position };
  const data = JSON.stringify({ type: 'error', ...base, ts: now_ms / 1000, ...fields });
  return Buffer.from(`id: ${position}\nevent: error\ndata: ${data}\n\n`);
}
