import { afterEach, beforeEach, describe, expect, expectTypeOf, test, vi } from 'vitest';
import { invalid, Problem, problems } from '../core/problem.ts';
import type { Agent } from '../features/agents/rules.ts';
import type { Handlers } from '../server/call.ts';
import type { HttpServer } from '../server/server.ts';
import { openFakeHttp, ROOT_TOKEN } from '../testing/http.ts';
import { Client, type Frame, ReconnectSignal, Unreachable } from './client.ts';

const servers: HttpServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.drain()));
});

async function clientOf(handlers: Partial<Handlers>): Promise<Client> {
  const server = await openFakeHttp(handlers);
  servers.push(server);
  return new Client({ url: `${server.url}/`, token: ROOT_TOKEN });
}

const AT = '2026-01-02T03:04:05.678Z';
const user = (id: number) => ({
  id: `usr_${id}`,
  username: `u${id}`,
  role: 'user' as const,
  created_at: AT,
});

/** A stream that numbers its frames, ends after every third one, and starts after the client's position. */
function countingStream(seen: (string | undefined)[]): Handlers['followAgent'] {
  return (call) => {
    const position = call.headers['last-event-id'] as string | undefined;
    seen.push(position);
    const response = call.hijack();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('retry: 1000\n\n');
    const after = Number(position ?? 0);
    for (let n = after + 1; n <= after + 3; n++) {
      response.write(`id: ${n}\nevent: output\ndata: {"type":"output","data":"ü${n}"}\n\n`);
    }
    response.end('id: 99\nevent: output\ndata: {"type":"cut of');
    return undefined;
  };
}

describe('calls', () => {
  test('a call sends path, query and body, and returns the typed response', async () => {
    const client = await clientOf({
      updateUser: (call) => ({ ...user(1), id: call.params.user_id, username: call.body.username! }),
      getChange: (call) => {
        throw invalid(call.params.path);
      },
    });
    const answer = await client.call('updateUser', { params: { user_id: 'a b' }, body: { username: 'bob' } });
    expect(answer).toEqual({ ...user(1), id: 'a b', username: 'bob' });
    const change = client.call('getChange', { params: { agent_id: 'agt_1', path: 'src/a b#?.ts' } });
    await expect(change).rejects.toThrow('src/a b#?.ts');
    expectTypeOf(client.call<'getAgent'>).returns.resolves.toEqualTypeOf<Agent>();
  });

  test('a response without a body is undefined', async () => {
    const client = await clientOf({ logout: () => undefined });
    expect(await client.call('logout')).toBeUndefined();
  });

  test("throws the server's problem unchanged", async () => {
    const client = await clientOf({
      startAgent: () => {
        throw problems.agentAlreadyRunning();
      },
    });
    const error = await client.call('startAgent', { params: { agent_id: 'agt_1' } }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(Problem);
    expect(error).toMatchObject({ ...problems.agentAlreadyRunning(), message: 'agent is already running' });
  });

  test('throws Unreachable if there is no server', async () => {
    const client = await clientOf({});
    await servers.splice(0)[0]!.drain();
    await expect(client.call('getMe')).rejects.toThrow(Unreachable);
  });

  test('reads a list page by page to its end', async () => {
    const client = await clientOf({
      listUsers: ({ query }) => {
        const from = Number(query.cursor ?? 0);
        const next = from + query.limit!;
        return { items: [user(from)], ...(next <= 400 && { next_cursor: String(next) }) };
      },
    });
    const names: string[] = [];
    for await (const found of client.all('listUsers')) names.push(found.username);
    expect(names).toEqual(['u0', 'u200', 'u400']);
  });

  test('a list waits while the server limits requests, and then continues', async () => {
    let attempts = 0;
    const client = await clientOf({
      listUsers: ({ query }) => {
        if (++attempts === 2)
          throw new Problem('rate_limited', 'rate_limited', 'too many requests', { retry_after_s: 0.01 });
        return { items: [user(attempts)], ...(query.cursor === undefined && { next_cursor: '1' }) };
      },
    });
    const names: string[] = [];
    for await (const found of client.all('listUsers')) names.push(found.username);
    expect(names).toEqual(['u1', 'u3']);
  });

  test.each([
    ['breaks', new ReadableStream({ pull: (body) => body.error(new TypeError('terminated')) })],
    ['is not JSON', '<html>'],
  ])('a list whose body %s throws Unreachable', async (_, body) => {
    const client = new Client({ url: 'http://plane', fetch: async () => new Response(body) });
    await expect(client.all('listUsers').next()).rejects.toThrow(Unreachable);
  });
});

describe('streams', () => {
  test('resumes an ended stream after its last complete event', async () => {
    const seen: (string | undefined)[] = [];
    const client = await clientOf({ followAgent: countingStream(seen) });
    const stop = new AbortController();
    const states: string[] = [];
    const frames: Frame[] = [];
    const follow = client.follow(
      'followAgent',
      { params: { agent_id: 'agt_1' }, signal: stop.signal },
      { backoff_ms: [0], onState: (state) => states.push(state) },
    );
    for await (const frame of follow) {
      frames.push(frame);
      if (frames.length === 8) stop.abort();
    }
    expect(frames.map(({ id }) => id)).toEqual(['1', '2', '3', '4', '5', '6', '7', '8']);
    expect(frames[7]).toEqual({ id: '8', event: 'output', data: { type: 'output', data: 'ü8' } });
    expect(seen.slice(0, 3)).toEqual([undefined, '3', '6']);
    expect(states.slice(0, 4)).toEqual(['connecting', 'connected', 'reconnecting', 'connected']);
  });

  test('throws a permanent error', async () => {
    const client = await clientOf({
      followAgent: () => {
        throw problems.agentNotFound();
      },
    });
    const signal = new AbortController().signal;
    const follow = client.follow('followAgent', { params: { agent_id: 'agt_1' }, signal });
    await expect(follow.next()).rejects.toThrow('agent not found');
  });

  test('retries after a temporary error', async () => {
    let attempts = 0;
    const client = await clientOf({
      followAgent: (call) => {
        if (attempts++ < 2) throw problems.draining();
        return (countingStream([]) as (c: typeof call) => undefined)(call);
      },
    });
    const stop = new AbortController();
    const follow = client.follow(
      'followAgent',
      { params: { agent_id: 'agt_1' }, signal: stop.signal },
      { backoff_ms: [0], last_event_id: '41' },
    );
    expect((await follow.next()).value?.id).toBe('42');
    stop.abort();
    await follow.return();
    expect(attempts).toBe(3);
  });

  test('throws after several connections without a new event, if limited', async () => {
    let attempts = 0;
    const client = await clientOf({
      followAgent: (call) => {
        const response = call.hijack();
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        // The first three connections bring a new event; the others repeat the last one.
        response.end(`id: ${Math.min(++attempts, 3)}\ndata: {"type":"output"}\n\n`);
        return undefined;
      },
    });
    const follow = client.follow(
      'followAgent',
      { params: { agent_id: 'agt_1' }, signal: new AbortController().signal },
      { backoff_ms: [0], fruitless_max: 2 },
    );
    const read = async () => {
      for await (const _ of follow);
    };
    await expect(read()).rejects.toThrow('does not answer');
    expect(attempts).toBe(5);
  });

  test('treats a silent connection as dead', async () => {
    let attempts = 0;
    const client = await clientOf({
      followAgent: (call) => {
        const attempt = ++attempts;
        const response = call.hijack();
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(attempt === 1 ? 'retry: 1000\n\n' : `id: 1\ndata: {"type":"output"}\n\n`);
        call.signal.addEventListener('abort', () => response.end());
        return undefined;
      },
    });
    const stop = new AbortController();
    const follow = client.follow(
      'followAgent',
      { params: { agent_id: 'agt_1' }, signal: stop.signal },
      { backoff_ms: [0], silence_ms: 200 },
    );
    expect((await follow.next()).value?.id).toBe('1');
    stop.abort();
    await follow.return();
    expect(attempts).toBeGreaterThan(1);
  });
});

describe('waits between attempts', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Follows a server that is unavailable by default, and records the time of each attempt. */
  function openOnFakeClock(answer = (_: AbortSignal) => new Response(null, { status: 503 })) {
    const began = performance.now();
    const attempts_s: number[] = [];
    const waits_ms: (number | undefined)[] = [];
    const client = new Client({
      url: 'http://127.0.0.1',
      fetch: (_, init) => {
        attempts_s.push((performance.now() - began) / 1000);
        return Promise.resolve(answer(init!.signal!));
      },
    });
    const stop = new AbortController();
    const reconnect_signal = new ReconnectSignal();
    const follow = client.follow(
      'followAgent',
      { params: { agent_id: 'agt_1' }, signal: stop.signal },
      { reconnect_signal, onState: (state, wait_ms) => state === 'reconnecting' && waits_ms.push(wait_ms) },
    );
    const ended = follow.next();
    const end = async () => {
      stop.abort();
      await ended;
    };
    return { attempts_s, waits_ms, reconnect_signal, end };
  }

  test('are 1, 2, 4 and 8 seconds, and 30 seconds from then on', async () => {
    const { attempts_s, waits_ms, end } = openOnFakeClock();
    await vi.advanceTimersByTimeAsync(80_000);
    expect(attempts_s).toEqual([0, 1, 3, 7, 15, 45, 75]);
    expect(waits_ms).toEqual([1_000, 2_000, 4_000, 8_000, 30_000, 30_000, 30_000]);
    await end();
  });

  test('restart at one second after a reconnect signal', async () => {
    const { attempts_s, waits_ms, reconnect_signal, end } = openOnFakeClock();
    await vi.advanceTimersByTimeAsync(20_000);
    reconnect_signal.send();
    await vi.advanceTimersByTimeAsync(8_000);
    expect(attempts_s).toEqual([0, 1, 3, 7, 15, 21, 23, 27]);
    expect(waits_ms.slice(5)).toEqual([1_000, 2_000, 4_000, 8_000]);
    await end();
  });

  test('restart after a connection that stayed open for a while, even without events', async () => {
    let cut = () => {};
    const { attempts_s, end } = openOnFakeClock((signal) => {
      if (attempts_s.length < 4) return new Response(null, { status: 503 });
      const start = (body: ReadableStreamDefaultController) => {
        cut = () => body.error(new TypeError('cut'));
        signal.addEventListener('abort', cut);
      };
      return new Response(new ReadableStream({ start }));
    });
    await vi.advanceTimersByTimeAsync(12_000);
    cut();
    await vi.advanceTimersByTimeAsync(1_500);
    cut();
    await vi.advanceTimersByTimeAsync(3_000);
    expect(attempts_s).toEqual([0, 1, 3, 7, 13, 15.5]);
    await end();
  });

  test('are never extended by reconnect signals', async () => {
    const { attempts_s, reconnect_signal, end } = openOnFakeClock();
    for (let i = 0; i < 4; i++) {
      await vi.advanceTimersByTimeAsync(300);
      reconnect_signal.send();
    }
    expect(attempts_s).toEqual([0, 1]);
    await end();
  });

  test('are not shortened by a reconnect signal if the server asked for them', async () => {
    const busy = () => new Response(null, { status: 429, headers: { 'retry-after': '10' } });
    const { attempts_s, reconnect_signal, end } = openOnFakeClock(busy);
    await vi.advanceTimersByTimeAsync(4_000);
    reconnect_signal.send();
    await vi.advanceTimersByTimeAsync(7_000);
    expect(attempts_s).toEqual([0, 10]);
    await end();
  });

  test('renew closes a connection and reopens it after a second', async () => {
    const open = (signal: AbortSignal) =>
      new Response(
        new ReadableStream({
          start: (body) => signal.addEventListener('abort', () => body.error(signal.reason)),
        }),
      );
    const { attempts_s, reconnect_signal, end } = openOnFakeClock(open);
    await vi.advanceTimersByTimeAsync(10_000);
    reconnect_signal.send();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(attempts_s).toEqual([0]);
    reconnect_signal.send(true);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(attempts_s).toEqual([0, 13]);
    await end();
  });
});
