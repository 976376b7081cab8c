/** Long-poll reads on the plane. The test plays the part of the node. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { beforeEach, expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { type PullRequest, type PullResponse, PullResponseSchema, type Read } from '../proto/node_pb.ts';
import { Pulls } from './pulls.ts';

let pulls: Pulls;
let woken: string[];
let requests: AsyncGenerator<PullRequest>;
let answers: ReadableStreamDefaultController<PullResponse>;
let taken: Promise<unknown>;

beforeEach(() => {
  woken = [];
  pulls = new Pulls((session_id) => woken.push(session_id));
  requests = pulls.requests(new AbortController().signal);
  const stream = new ReadableStream<PullResponse>({
    start: (controller) => {
      answers = controller;
    },
  });
  taken = pulls.take(stream.values()).catch((error: Error) => error.message);
});

/** The next request to the node. */
async function asked(): Promise<Read[]> {
  const { value } = await requests.next();
  return (value as PullRequest).reads;
}

/** Returns the next request's only read. */
async function one(): Promise<Read> {
  const reads = await asked();
  expect(reads).toHaveLength(1);
  return reads[0]!;
}

async function answer(response: MessageInitShape<typeof PullResponseSchema>): Promise<void> {
  answers.enqueue(create(PullResponseSchema, response));
  // Lets the event loop turn until the answer is processed.
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
}

const chunk = (id: number, text: string, last: boolean) =>
  answer({ chunks: [{ id, data: Buffer.from(text), last }] });

const read = async (from: number, max = 100, into?: Uint8Array) =>
  Buffer.from(await pulls.read('ses_a', 'stdout', from, max, into)).toString();

/** Reads a stream `text` to its end, and returns the read that is then open. */
async function longPoll(text = ''): Promise<Read> {
  const reading = read(0);
  await chunk((await one()).id, text, true);
  expect(await reading).toBe(text);
  return one();
}

test('a read at the end opens a long-poll read, whose bytes wake the reader and are available at once', async () => {
  const long_poll = await longPoll('abc');
  expect(long_poll).toMatchObject({ sessionId: 'ses_a', stream: 'stdout', from: 3n, longPoll: true });
  expect(long_poll.max).toBe(limits.long_poll_bytes_max);
  expect(await read(3)).toBe('');
  await chunk(long_poll.id, 'one', false);
  await chunk(long_poll.id, 'two', false);
  expect(woken).toEqual(['ses_a', 'ses_a']);
  expect(await read(3, 4)).toBe('onet');
  expect(await read(7, 100, new Uint8Array(100))).toBe('wo');
  expect(await read(9)).toBe('');
  await chunk(long_poll.id, 'three', false);
  expect(await read(9)).toBe('three');
});

test('a read that is answered in full opens no long-poll read', async () => {
  const reading = read(0, 3);
  await chunk((await one()).id, 'abc', true);
  expect(await reading).toBe('abc');
  const next = read(3);
  expect(await one()).toMatchObject({ from: 3n, longPoll: false });
  pulls.end();
  await expect(next).rejects.toMatchObject({ code: 'node_unreachable' });
});

test.each([undefined, new Uint8Array(limits.long_poll_bytes_max + 100)])(
  'requests what follows a used-up long-poll read, and returns it after the bytes of that read',
  async (into) => {
    const long_poll = await longPoll();
    const all = 'x'.repeat(limits.long_poll_bytes_max);
    await chunk(long_poll.id, all, true);
    const reading = read(0, all.length + 100, into);
    const rest = await one();
    expect(rest).toMatchObject({ from: BigInt(all.length), max: 100, longPoll: false });
    await chunk(rest.id, 'rest', true);
    expect(await reading).toBe(`${all}rest`);
    expect(await one()).toMatchObject({ from: BigInt(all.length + 4), longPoll: true });
  },
);

test('two reads at one offset are both answered, and open one long-poll read', async () => {
  const both = [read(0), read(0)];
  const [first, second] = await asked();
  await chunk(first!.id, 'ab', true);
  await chunk(second!.id, 'ab', true);
  expect(await Promise.all(both)).toEqual(['ab', 'ab']);
  expect(await one()).toMatchObject({ from: 2n, longPoll: true });
});

test('a read at another offset sends a request; the earlier one still wakes, and its bytes are ignored', async () => {
  const before = await longPoll('abc');
  await chunk(before.id, 'def', false);
  const reading = read(1);
  expect(await one()).toMatchObject({ from: 1n, longPoll: false });
  await chunk(before.id, 'ghi', false);
  expect(woken).toHaveLength(2);
  await chunk(before.id + 1, 'bcdefghi', true);
  expect(await reading).toBe('bcdefghi');
  const long_poll = await one();
  expect(long_poll).toMatchObject({ from: 9n, longPoll: true });
  await chunk(before.id, '', true);
  await chunk(long_poll.id, 'jkl', false);
  expect(await read(9)).toBe('jkl');
});

test('once a session’s end is known, every read asks the node', async () => {
  const long_poll = await longPoll('abc');
  await chunk(long_poll.id, 'de', false);
  pulls.ended('ses_a');
  const reading = read(3);
  await chunk((await one()).id, 'def', true);
  expect(await reading).toBe('def');
  await chunk(long_poll.id, 'f', false);
  const last = read(6);
  expect(await one()).toMatchObject({ from: 6n, longPoll: false });
  pulls.forget('ses_a');
  await answer({
    refused: [{ id: long_poll.id, refusal: { kind: 'not_found', code: 'session_not_found' } }],
  });
  pulls.end();
  await expect(last).rejects.toMatchObject({ code: 'node_unreachable' });
});

test('lost bytes wake the reader, which gets the error from its next read', async () => {
  const long_poll = await longPoll('abc');
  const refusal = { kind: 'conflict', code: 'output_lost', message: 'gone' };
  await answer({ refused: [{ id: long_poll.id, refusal }] });
  expect(woken).toEqual(['ses_a']);
  const reading = expect(read(3)).rejects.toMatchObject({ code: 'output_lost' });
  await answer({ refused: [{ id: (await one()).id, refusal }] });
  await reading;
});

test('a node without long-poll reads answers with nothing, and is not asked again', async () => {
  await chunk((await longPoll('abc')).id, '', true);
  expect(woken).toEqual([]);
  const reading = read(3);
  await chunk((await one()).id, 'def', true);
  expect(await reading).toBe('def');
  const next = read(6);
  expect(await one()).toMatchObject({ from: 6n, longPoll: false });
  pulls.end();
  await expect(next).rejects.toMatchObject({ code: 'node_unreachable' });
});

test('the end of the link discards buffered bytes', async () => {
  await chunk((await longPoll()).id, 'abc', false);
  pulls.end();
  await expect(read(0)).rejects.toMatchObject({ code: 'node_unreachable' });
});

test('more bytes than requested are a protocol error', async () => {
  const { id } = await longPoll();
  await chunk(id, 'x'.repeat(limits.long_poll_bytes_max), false);
  await chunk(id, 'x', false);
  expect(await taken).toBe('bytes that were not requested');
});

test('limits open reads; a dropped one counts until the node has ended it', async () => {
  const ends = async (session_id: string) => {
    const reading = pulls.read(session_id, 'stdout', 0, 10);
    await chunk((await one()).id, '', true);
    await reading;
  };
  const ids: number[] = [];
  for (let i = 0; i < limits.long_polls_max; i++) {
    const reading = pulls.read(`ses_${i}`, 'stdout', 0, 10);
    const { id } = await one();
    answers.enqueue(create(PullResponseSchema, { chunks: [{ id, last: true }] }));
    await reading;
    ids.push((await one()).id);
  }
  await ends('ses_more');
  pulls.forget('ses_0');
  await ends('ses_more');
  await answer({ refused: [{ id: ids[0]! }] });
  await ends('ses_more');
  expect(await one()).toMatchObject({ sessionId: 'ses_more', longPoll: true });
});

test('bytes are acknowledged in parts of a window, not per line', async () => {
  const { id } = await longPoll();
  await chunk(id, 'line\n', false);
  const size = limits.pull_credit_bytes;
  const reading = read(0, size + 100);
  await answer({ chunks: [{ id, data: new Uint8Array(8), last: true }] });
  expect(await reading).toBe('line\n');
  const long = pulls.read('ses_b', 'stdout', 0, size);
  const request = await requests.next();
  expect(request.value.credit).toBe(0);
  await answer({ chunks: [{ id: request.value.reads[0].id, data: new Uint8Array(size), last: true }] });
  expect(await long).toHaveLength(size);
  expect((await requests.next()).value.credit).toBe(size + 13);
});
