import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { FakeStreams } from '../../testing/fake-streams.ts';
import { type ClientHandle, StreamHub } from './hub.ts';
import type { ToClient, ToHub } from './messages.ts';

const AGENTS = ['a', 'b', 'c', 'd', 'e'];

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A page that records its messages, and acknowledges batches unless it is stuck. */
class FakePage {
  readonly handle: ClientHandle;
  readonly messages: ToClient[] = [];
  is_stuck = false;
  readonly #unacked: ToHub[] = [];

  constructor(hub: StreamHub, { visible = true, token = 't' as string | null } = {}) {
    this.handle = hub.join((message) => this.#receive(message));
    this.handle.receive({ type: 'hello', token, visible });
  }

  watch(watch: number, agent_id: string, from: { after?: number | null; tail?: number } = {}): void {
    this.handle.receive({ type: 'subscribe', subscription: watch, agent_id, after: null, ...from });
  }

  resume(): void {
    this.is_stuck = false;
    for (const message of this.#unacked.splice(0)) this.handle.receive(message);
  }

  /** The numbers of the events of a subscription in the order of arrival, with gaps and resets by their codes. */
  seen(watch: number): (number | string)[] {
    return this.of('events')
      .filter((message) => message.subscription === watch)
      .flatMap(({ frames }) => frames)
      .map(({ data }) => (data.type === 'error' ? `${data.code} ${data.seq}` : Number(data.seq)));
  }

  of<T extends ToClient['type']>(type: T): Extract<ToClient, { type: T }>[] {
    return this.messages.filter((message) => message.type === type) as Extract<ToClient, { type: T }>[];
  }

  #receive(message: ToClient): void {
    this.messages.push(message);
    if (message.type !== 'events' && message.type !== 'changes') return;
    this.#unacked.push({
      type: 'ack',
      subscription: message.type === 'events' ? message.subscription : null,
    });
    if (!this.is_stuck) setTimeout(() => this.is_stuck || this.resume(), 1);
  }
}

function open() {
  const plane = new FakeStreams(AGENTS);
  const hub = new StreamHub({ url: 'http://127.0.0.1', fetch: plane.fetch });
  return { plane, hub };
}

const pass = (ms = 100) => vi.advanceTimersByTimeAsync(ms);
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

describe('connections', () => {
  test('all pages share one stream of changes and one for each agent', async () => {
    const { plane, hub } = open();
    const pages = [new FakePage(hub), new FakePage(hub), new FakePage(hub, { visible: false })];
    for (const page of pages) page.watch(1, 'a');
    await pass();
    expect(plane.open).toEqual(['/api/agents/a/events', '/api/events']);
    plane.append('a', 3);
    await pass();
    expect(pages.map((page) => page.seen(1))).toEqual([[1, 2, 3], [1, 2, 3], []]);
  });

  test('a hidden page releases its agent, and continues from its position when it is shown', async () => {
    const { plane, hub } = open();
    const page = new FakePage(hub);
    page.watch(1, 'a');
    plane.append('a', 3);
    await pass();
    page.handle.receive({ type: 'visible', visible: false });
    plane.append('a', 3);
    await pass();
    expect(plane.open).toEqual(['/api/events']);
    expect(page.seen(1)).toEqual([1, 2, 3]);
    page.handle.receive({ type: 'visible', visible: true });
    await pass();
    expect(page.seen(1)).toEqual(numbers(1, 6));
    expect(plane.requests.at(-1)).toBe('agents/a/events?after=3');
  });

  test('of more than three agents, the three selected last have streams', async () => {
    const { plane, hub } = open();
    const pages = AGENTS.map((agent_id) => {
      const page = new FakePage(hub);
      page.watch(1, agent_id);
      return page;
    });
    await pass();
    const agents = () => plane.open.flatMap((path) => /agents\/(.)/.exec(path)?.[1] ?? []);
    expect(agents()).toEqual(['c', 'd', 'e']);
    pages[4]!.handle.leave();
    pages[0]!.handle.receive({ type: 'visible', visible: false });
    pages[0]!.handle.receive({ type: 'visible', visible: true });
    await pass();
    expect(agents()).toEqual(['a', 'c', 'd']);
  });

  test('all streams end with the last page', async () => {
    const { plane, hub } = open();
    const page = new FakePage(hub);
    page.watch(1, 'a');
    await pass();
    page.handle.leave();
    await pass();
    expect(plane.open).toEqual([]);
  });

  test('a new token reopens every stream at its position', async () => {
    const { plane, hub } = open();
    const page = new FakePage(hub);
    page.watch(1, 'a');
    plane.append('a', 2);
    await pass();
    plane.tokens = new Set(['u']);
    page.handle.receive({ type: 'token', token: 'u' });
    plane.append('a', 2);
    await pass();
    expect(plane.open).toEqual(['/api/agents/a/events', '/api/events']);
    expect(page.seen(1)).toEqual([1, 2, 3, 4]);
    expect(page.of('signed_out')).toEqual([]);
  });
});

describe('delivery to pages', () => {
  test('a subscription with a tail gets that many events before the newest', async () => {
    const { plane, hub } = open();
    plane.append('a', 100);
    const page = new FakePage(hub);
    page.watch(1, 'a', { tail: 3 });
    await pass();
    const second = new FakePage(hub);
    second.watch(1, 'a', { tail: 5 });
    plane.append('a', 1);
    await pass();
    expect(page.seen(1)).toEqual(numbers(98, 101));
    expect(second.seen(1)).toEqual(numbers(96, 101));
  });

  test('a subscription that misses deleted events gets the gap', async () => {
    const { plane, hub } = open();
    plane.append('a', 10);
    const page = new FakePage(hub);
    page.watch(1, 'a', { after: 6 });
    await pass();
    plane.forget('a', 5);
    const late = new FakePage(hub);
    late.watch(1, 'a');
    await pass();
    expect(page.seen(1)).toEqual([7, 8, 9, 10]);
    expect(late.seen(1)).toEqual(['events_truncated 5', 6, 7, 8, 9, 10]);
  });

  test('a shortened log resets every subscription past its end, including hidden ones', async () => {
    const { plane, hub } = open();
    plane.append('a', 10);
    const pages = [new FakePage(hub), new FakePage(hub)];
    for (const page of pages) page.watch(1, 'a', { after: 8 });
    await pass();
    pages[1]!.handle.receive({ type: 'visible', visible: false });
    plane.restore('a', 5);
    await pass(1_100);
    plane.append('a', 2);
    await pass();
    pages[1]!.handle.receive({ type: 'visible', visible: true });
    await pass();
    for (const page of pages) expect(page.seen(1)).toEqual([9, 10, 'reset 5', 6, 7]);
  });

  test('batches have at most 500 frames', async () => {
    const { plane, hub } = open();
    plane.append('a', 2_000);
    const page = new FakePage(hub);
    page.watch(1, 'a');
    await pass(1_000);
    const sizes = page.of('events').map(({ frames }) => frames.length);
    expect(sizes).toEqual([500, 500, 500, 500]);
    expect(page.seen(1)).toEqual(numbers(1, 2_000));
  });

  test('pauses the stream for a page that acknowledges nothing, and loses no event', async () => {
    const { plane, hub } = open();
    plane.append('a', 100_000);
    const page = new FakePage(hub);
    page.is_stuck = true;
    page.watch(1, 'a');
    await pass(10_000);
    expect(page.seen(1)).toEqual(numbers(1, 1_000));
    expect(plane.bytes_read.get('/api/agents/a/events')).toBeLessThan(200_000);
    page.resume();
    await pass(60_000);
    expect(page.seen(1)).toEqual(numbers(1, 100_000));
  });

  test('a page that acknowledges nothing delays others only briefly, and catches up later', async () => {
    const { plane, hub } = open();
    const [stuck, other] = [new FakePage(hub), new FakePage(hub)];
    stuck.is_stuck = true;
    for (const page of [stuck, other]) page.watch(1, 'a');
    plane.append('a', 5_000);
    await pass(1_000);
    expect(other.seen(1)).toEqual(numbers(1, 1_000));
    await pass(10_000);
    expect(other.seen(1)).toEqual(numbers(1, 5_000));
    expect(stuck.seen(1)).toEqual(numbers(1, 1_000));
    stuck.resume();
    plane.append('a', 10);
    await pass(10_000);
    for (const page of [stuck, other]) expect(page.seen(1)).toEqual(numbers(1, 5_010));
  });

  test('a subscription gets the state of its stream, with the time of the next attempt', async () => {
    const { plane, hub } = open();
    const page = new FakePage(hub);
    page.watch(1, 'a');
    await pass();
    plane.is_down = true;
    plane.cut();
    await pass(1_500);
    plane.is_down = false;
    await pass(2_000);
    const states = page.of('state').map(({ state, next_attempt_at }) => [state, next_attempt_at !== null]);
    expect(states).toEqual([
      ['connecting', false],
      ['connected', false],
      ['reconnecting', true],
      ['reconnecting', true],
      ['connected', false],
    ]);
  });

  test('a reconnect request shortens a long wait to a second', async () => {
    const { plane, hub } = open();
    plane.is_down = true;
    const page = new FakePage(hub);
    page.watch(1, 'a');
    plane.append('a', 1);
    await pass(16_000);
    plane.is_down = false;
    page.handle.receive({ type: 'reconnect', renew: false });
    await pass(990);
    expect(page.seen(1)).toEqual([]);
    await pass(100);
    expect(page.seen(1)).toEqual([1]);
  });

  test('every subscription gets its events once and in order, whatever pages, connections and logs do', async () => {
    const page_number = fc.nat({ max: 3 });
    const agent_id = fc.constantFrom('a', 'b');
    const action = fc.oneof(
      fc.record({ do: fc.constant('append' as const), agent_id, count: fc.nat({ max: 1_200 }) }),
      fc.record({ do: fc.constant('watch' as const), page: page_number, agent_id, after: fc.nat() }),
      fc.record({ do: fc.constant('unwatch' as const), page: page_number }),
      fc.record({ do: fc.constantFrom('show', 'hide', 'stick', 'resume', 'resume'), page: page_number }),
      fc.record({ do: fc.constant('stall' as const), page: page_number, agent_id }),
      fc.record({ do: fc.constantFrom('cut', 'down', 'up', 'reconnect', 'renew') }),
      fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 1, 16, 40, 1_000) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 60, size: 'max' }), async (actions) => {
        const { plane, hub } = open();
        const pages = [0, 1, 2, 3].map(() => new FakePage(hub));
        const watches: { page: number; watch: number; agent_id: string; after: number; live: boolean }[] = [];
        for (const each of actions) {
          const page = 'page' in each ? pages[each.page]! : pages[0]!;
          switch (each.do) {
            case 'append':
              plane.append(each.agent_id, each.count);
              break;
            case 'watch': {
              const after = each.after % (plane.head(each.agent_id) + 1);
              const watch = { page: each.page, watch: watches.length, agent_id: each.agent_id, after };
              watches.push({ ...watch, live: true });
              page.watch(watch.watch, watch.agent_id, { after });
              break;
            }
            case 'unwatch': {
              const watch = watches.findLast((watch) => watch.page === each.page && watch.live);
              if (!watch) break;
              watch.live = false;
              page.handle.receive({ type: 'unsubscribe', subscription: watch.watch });
              break;
            }
            case 'show':
            case 'hide':
              page.handle.receive({ type: 'visible', visible: each.do === 'show' });
              break;
            case 'stick':
              page.is_stuck = true;
              break;
            case 'resume':
              page.resume();
              break;
            case 'stall':
              // The page acknowledges nothing for longer than other pages wait for it.
              page.is_stuck = true;
              plane.append(each.agent_id, 1_200);
              await pass(6_000);
              for (let i = 0; i < 2; i++) {
                plane.append(each.agent_id, 1);
                await pass(1);
              }
              break;
            case 'cut':
              plane.cut();
              break;
            case 'down':
            case 'up':
              plane.is_down = each.do === 'down';
              break;
            case 'reconnect':
            case 'renew':
              page.handle.receive({ type: 'reconnect', renew: each.do === 'renew' });
              break;
            case 'pass':
              await pass(each.ms);
          }
        }
        plane.is_down = false;
        for (const page of pages) {
          page.handle.receive({ type: 'visible', visible: true });
          page.resume();
        }
        await pass(120_000);
        for (const { page, watch, agent_id, after, live } of watches) {
          const seen = pages[page]!.seen(watch);
          const head = live ? plane.head(agent_id) : after + seen.length;
          expect(seen).toEqual(numbers(after + 1, head));
        }
        for (const page of pages) page.handle.leave();
        await pass();
        expect(plane.open).toEqual([]);
      }),
      { numRuns: 50 },
    );
  });
});

describe('changes', () => {
  test('lists are reloaded when the stream starts, and by a page that opens later', async () => {
    const { plane, hub } = open();
    const page = new FakePage(hub);
    await pass();
    expect(page.of('reload')).toHaveLength(1);
    plane.change(3);
    await pass();
    const late = new FakePage(hub);
    expect(late.of('reload')).toHaveLength(1);
    plane.change();
    await pass();
    const ids = (each: FakePage) => each.of('changes').flatMap(({ frames }) => frames.map(({ id }) => id));
    expect(ids(page)).toEqual(['1', '2', '3', '4']);
    expect(ids(late)).toEqual(['4']);
  });

  test('a connection that broke before its first position reloads lists; a later one does not', async () => {
    const { plane, hub } = open();
    const page = new FakePage(hub);
    await pass();
    plane.cut();
    await pass(1_100);
    expect(page.of('reload')).toHaveLength(2);
    plane.change();
    await pass();
    plane.cut();
    plane.change();
    await pass(1_100);
    expect(page.of('reload')).toHaveLength(2);
    expect(page.of('changes').flatMap(({ frames }) => frames)).toHaveLength(2);
  });

  test('a page that joins while the stream reconnects reloads its lists once it is connected', async () => {
    const { plane, hub } = open();
    new FakePage(hub);
    plane.change();
    await pass();
    plane.is_down = true;
    plane.cut();
    await pass();
    // As after the back/forward cache: it has lists, but missed changes before those that the stream has read.
    const page = new FakePage(hub);
    plane.is_down = false;
    await pass(1_100);
    expect(page.of('fleet_state').at(-1)).toMatchObject({ state: 'connected' });
    expect(page.of('reload')).toHaveLength(1);
  });

  test('a page that acknowledges nothing delays no other page, and reloads its lists', async () => {
    const { plane, hub } = open();
    const [stuck, other] = [new FakePage(hub), new FakePage(hub)];
    stuck.is_stuck = true;
    await pass();
    for (let i = 0; i < 50; i++) {
      plane.change();
      await pass(20);
    }
    const count = (page: FakePage) => page.of('changes').flatMap(({ frames }) => frames).length;
    expect([count(stuck), count(other)]).toEqual([8, 50]);
    const reloads = stuck.of('reload').length;
    stuck.resume();
    plane.change();
    await pass();
    expect(stuck.of('reload')).toHaveLength(reloads + 1);
    expect([count(stuck), count(other)]).toEqual([9, 51]);
  });
});

describe('permanent errors', () => {
  test('an invalid token signs all pages out, and nothing is retried', async () => {
    const { plane, hub } = open();
    const pages = [new FakePage(hub), new FakePage(hub)];
    pages[0]!.watch(1, 'a');
    await pass();
    plane.tokens = new Set();
    plane.cut();
    await pass(1_100);
    for (const page of pages) expect(page.of('signed_out')).toEqual([{ type: 'signed_out', token: 't' }]);
    const request_count = plane.requests.length;
    await pass(120_000);
    expect(plane.requests).toHaveLength(request_count);
    expect(plane.open).toEqual([]);
  });

  test('an agent that does not exist is reported as gone, and requested once', async () => {
    const { plane, hub } = open();
    const page = new FakePage(hub);
    page.watch(1, 'x');
    page.watch(2, 'a');
    plane.append('a', 1);
    await pass(60_000);
    expect(page.of('gone')).toEqual([{ type: 'gone', subscription: 1 }]);
    expect(page.seen(2)).toEqual([1]);
    expect(plane.requests.filter((request) => request.includes('/x/'))).toHaveLength(1);
  });

  test('the 404 of a proxy does not count as a deletion, and the stream of changes is tried again', async () => {
    const { plane, hub } = open();
    const page = new FakePage(hub);
    page.watch(1, 'a');
    await pass();
    plane.is_misrouted = true;
    plane.cut();
    await pass(2_000);
    expect(page.of('gone')).toEqual([]);
    expect(page.of('failed')).toEqual([{ type: 'failed', subscription: 1, error: 'no such page' }]);
    expect(page.of('fleet_state').at(-1)?.state).toBe('reconnecting');
    const reloads = page.of('reload').length;
    plane.is_misrouted = false;
    await pass(30_000);
    expect(plane.open).toEqual(['/api/events']);
    expect(page.of('fleet_state').at(-1)?.state).toBe('connected');
    expect(page.of('reload')).toHaveLength(reloads + 1);
  });
});
