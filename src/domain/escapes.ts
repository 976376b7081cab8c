/**
 * Escape sequences of terminals that stand between letters without being shown (pure): control sequences (CSI), of which
 * colours are some, and the short ones that choose a character set. A terminal, and whoever drops them, shows the letters
 * on both sides as neighbours. Strings (OSC, DCS) are no such sequences here: they hold text that has to be searched.
 */
const ESC = 0x1b;
/** No secret fits into the parameters of a sequence: its numbers are shorter, and there are so many of them at most. */
const DIGITS_MAX = 4;
const NUMBERS_MAX = 24;
const INTERMEDIATES_MAX = 2;

/** Bytes of a stream without the sequences in them, and where each is from. */
export interface Unescaped {
  bytes: Buffer;
  /** Where in the stream the byte at `index` of `bytes` is. */
  origin(index: number): number;
  /** Index of the first of `bytes` that is at `place` of the stream or behind it. */
  index(place: number): number;
  /** `place`, or where the sequence begins that `place` is in. */
  outside(place: number): number;
  /** Sequences that begin between two places of the stream. */
  between(from: number, to: number): Buffer[];
  /** Where an incomplete sequence at the end of the stream begins; the stream's length if every sequence is complete. */
  end: number;
}

/** Null if the data has no escape byte. `last`: nothing follows, so an incomplete sequence at the end counts as text. */
export function unescaped(data: Buffer, last: boolean): Unescaped | null {
  const first = data.indexOf(ESC);
  if (first < 0) return null;
  const bytes = Buffer.allocUnsafe(data.length);
  /** Of each sequence: where it begins and ends, and how many bytes of text are before it. */
  const begins: number[] = [];
  const ends: number[] = [];
  const before: number[] = [];
  let length = data.copy(bytes, 0, 0, first);
  let end = data.length;
  // A byte at a time: sequences are often so close that a call for each stretch of text costs more.
  for (let at = first; at < end; ) {
    const byte = data[at]!;
    const sequence_end = byte === ESC ? endOfSequence(data, at) : 0;
    if (sequence_end === UNDECIDED && !last) {
      end = at;
    } else if (sequence_end > 0) {
      begins.push(at);
      ends.push(sequence_end);
      before.push(length);
      at = sequence_end;
    } else {
      bytes[length++] = byte;
      at++;
    }
  }
  return {
    bytes: bytes.subarray(0, length),
    origin: (index) => {
      const passed = countBelow(before, index + 1);
      return passed === 0 ? index : index - before[passed - 1]! + ends[passed - 1]!;
    },
    index: (place) => {
      const passed = countBelow(begins, place);
      return passed === 0 ? place : before[passed - 1]! + Math.max(0, place - ends[passed - 1]!);
    },
    outside: (place) => {
      const passed = countBelow(begins, place);
      return passed > 0 && place < ends[passed - 1]! ? begins[passed - 1]! : place;
    },
    between: (from, to) => {
      const found: Buffer[] = [];
      for (let n = countBelow(begins, from); n < begins.length && begins[n]! < to; n++)
        found.push(data.subarray(begins[n]!, ends[n]!));
      return found;
    },
    end,
  };
}

/** The text without the sequences in it. */
export function withoutEscapes(text: string): string {
  if (!text.includes('\x1b')) return text;
  return unescaped(Buffer.from(text), true)?.bytes.toString() ?? text;
}

const UNDECIDED = -1;

/** The place behind the sequence that begins at `at` (ECMA-48, 5.4); 0 where none does, UNDECIDED where the bytes end. */
function endOfSequence(data: Buffer, at: number): number {
  const end = data.length;
  let next = at + 1;
  if (next === end) return UNDECIDED;
  const kind = data[next]!;
  const is_csi = kind === 0x5b;
  if (is_csi) {
    next++;
    if (next < end && data[next]! >= 0x3c && data[next]! <= 0x3f) next++;
    let digits = 0;
    let numbers = 1;
    for (; next < end && data[next]! >= 0x30 && data[next]! <= 0x3b; next++) {
      if (data[next]! < 0x3a) digits++;
      else {
        digits = 0;
        numbers++;
      }
      if (digits > DIGITS_MAX || numbers > NUMBERS_MAX) return 0;
    }
  }
  const intermediates_from = next;
  while (next < end && data[next]! >= 0x20 && data[next]! <= 0x2f) {
    next++;
    if (next - intermediates_from > INTERMEDIATES_MAX) return 0;
  }
  if (next === end) return UNDECIDED;
  const final = data[next]!;
  if (is_csi) return final >= 0x40 && final <= 0x7e ? next + 1 : 0;
  if (next > intermediates_from) return final >= 0x30 && final <= 0x7e ? next + 1 : 0;
  return final >= 0x30 && final <= 0x7e && !STRING_INTRODUCERS.has(final) ? next + 1 : 0;
}

/** DCS, SOS, OSC, PM and APC. */
const STRING_INTRODUCERS = new Set([...'PX]^_'].map((one) => one.charCodeAt(0)));

/** How many of the numbers, which never fall, are below a bound. */
function countBelow(numbers: readonly number[], bound: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle]! < bound) low = middle + 1;
    else high = middle;
  }
  return low;
}
