/** Protobuf messages with arbitrary fields, and bytes that are almost such messages. */
import { create, type DescField, type DescMessage, ScalarType, toBinary } from '@bufbuild/protobuf';
import { text } from './malformed.ts';
import { garbled, type Rng } from './rng.ts';

/** Returns a valid text for a field with this name; undefined if none is known. */
export type KnownFieldValues = (name: string, rng: Rng) => string | undefined;

const WHOLE = [0, 1, 2, 60, 2 ** 31 - 1];
const LONG = [0n, 1n, 2n ** 31n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 63n - 1n];

/** `error_rate`: the share of fields with arbitrary values. */
export function messageBytes(
  rng: Rng,
  desc: DescMessage,
  values: KnownFieldValues,
  error_rate: number,
): Buffer {
  const bytes = Buffer.from(toBinary(desc, message(rng, desc, values, error_rate, 0)));
  if (!rng.chance(error_rate)) return bytes;
  switch (rng.below(6)) {
    case 0:
      return bytes.subarray(0, rng.below(bytes.length + 1));
    case 1:
      return Buffer.concat([bytes, unknownField(rng)]);
    case 2:
      return Buffer.concat([unknownField(rng), bytes]);
    case 3:
      // Nested starts of groups.
      return Buffer.concat([bytes, Buffer.alloc(rng.pick([1, 100, 100_000]), 0x7b)]);
    case 4:
      return rng.bytes(rng.below(200));
    default:
      return garbled(rng, bytes);
  }
}

function message(rng: Rng, desc: DescMessage, values: KnownFieldValues, error_rate: number, levels: number) {
  const made = create(desc) as unknown as Record<string, unknown>;
  const chosen = new Map(desc.oneofs.map((oneof) => [oneof.name, rng.pick(oneof.fields).name]));
  for (const field of desc.fields) {
    if (rng.chance(error_rate / 2) || levels > 4) continue;
    const value = fieldValue(rng, field, values, error_rate, levels);
    if (field.oneof === undefined) made[field.localName] = value;
    else if (chosen.get(field.oneof.name) === field.name)
      made[field.oneof.localName] = { case: field.localName, value };
  }
  return made as never;
}

function fieldValue(
  rng: Rng,
  field: DescField,
  values: KnownFieldValues,
  error_rate: number,
  levels: number,
): unknown {
  const scalar = (type: ScalarType) => scalarOf(rng, type, field.name, values, error_rate);
  switch (field.fieldKind) {
    case 'message':
      return message(rng, field.message, values, error_rate, levels + 1);
    case 'list':
      if (field.listKind === 'message')
        return rng.some(3, () => message(rng, field.message, values, error_rate, levels + 1));
      return rng.some(3, () => (field.listKind === 'scalar' ? scalar(field.scalar) : 0));
    case 'map':
      return Object.fromEntries(rng.some(3, () => [text(rng).toWellFormed(), text(rng).toWellFormed()]));
    case 'scalar':
      return scalar(field.scalar);
    default:
      return 0;
  }
}

function scalarOf(
  rng: Rng,
  type: ScalarType,
  name: string,
  values: KnownFieldValues,
  error_rate: number,
): unknown {
  switch (type) {
    case ScalarType.STRING: {
      const known = rng.chance(error_rate) ? undefined : values(name, rng);
      return known ?? text(rng).toWellFormed();
    }
    case ScalarType.BOOL:
      return rng.chance(0.5);
    case ScalarType.BYTES:
      return new Uint8Array(rng.bytes(rng.below(64)));
    case ScalarType.UINT32:
      return rng.pick([...WHOLE, 2 ** 32 - 1]);
    case ScalarType.INT32:
      return rng.pick([...WHOLE, -1, -(2 ** 31)]);
    case ScalarType.UINT64:
      return rng.pick([...LONG, 2n ** 64n - 1n]);
    case ScalarType.INT64:
      return rng.pick([...LONG, -1n, -(2n ** 63n)]);
    default:
      return 0;
  }
}

function unknownField(rng: Rng): Buffer {
  const number = rng.pick([1, 2, 15, 1_000, 2 ** 29 - 1]);
  const content = rng.bytes(rng.below(12));
  return Buffer.concat([
    varint(number * 8 + rng.below(8)),
    rng.chance(0.5) ? varint(rng.pick([content.length, 2 ** 31, 5])) : Buffer.alloc(0),
    content,
  ]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let remaining = value; ; remaining = Math.floor(remaining / 128)) {
    if (remaining < 128) return Buffer.from([...bytes, remaining]);
    bytes.push((remaining % 128) + 128);
  }
}
