/** Faults on the sockets of the HTTP listener: bodies, lengths, slow clients, foreign hosts and origins. */
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { sleep } from '../../src/base/async.ts';
import { MIB } from '../../src/base/limits.ts';
import {
  bytesOf,
  foreignHosts,
  foreignOrigins,
  type UnclearRequest,
  unclearRequests,
} from '../../src/testing/bad-requests.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { sendRequest } from '../../src/testing/send-request.ts';
import { Child } from '../child.ts';
import { percentile } from '../figure.ts';
import { forgetPeak, peakMib, rssMib } from '../machine.ts';
import type { SlowClientsArgs, SlowClientsReport } from '../processes/slow-clients.ts';
import { forEachConcurrently, portOf, withProgram } from '../program.ts';
import { counts, type FaultRow, ms, Tally, upTo } from './row.ts';

const AT_ONCE = 20;
const GROWTH_MIB_MAX = 128;
const P99_MS_MAX = 200;

// --- bodies -------------------------------------------------------------------------------------------------------------

export const bodies: FaultRow = {
  number: 36,
  fault: 'a body of 1 MiB + 1, one in endless chunks, one that decompresses to 64 MiB',
  expected: 'rejected quickly (413, 415), with bounded memory',
  default_n: 200,
  run: (n) =>
    withProgram(async (plane) => {
      const tally = new Tally();
      const bomb = gzipSync(Buffer.alloc(64 * MIB));
      const kinds: [name: string, status: number, headers: string[], body: Buffer | 'endless'][] = [
        ['1 MiB + 1', 413, [`Content-Length: ${MIB + 1}`], Buffer.alloc(MIB + 1, 32)],
        ['1 MiB + 1 in one chunk', 413, ['Transfer-Encoding: chunked'], chunk(Buffer.alloc(MIB + 1, 32))],
        ['endless chunks', 413, ['Transfer-Encoding: chunked'], 'endless'],
        ['compressed', 415, ['Content-Encoding: gzip', `Content-Length: ${bomb.length}`], bomb],
        ['Content-Length of a terabyte', 413, ['Content-Length: 1099511627776'], Buffer.alloc(1024, 32)],
      ];
      await exchange(plane, ['Content-Length: 2'], Buffer.from('{}'));
      const before_mib = rssMib(plane.pid);
      forgetPeak(plane.pid);
      for (const [name, status, headers, body] of kinds) {
        const answers: Exchanged[] = [];
        await forEachConcurrently(
          upTo(n),
          AT_ONCE,
          async () => void answers.push(await exchange(plane, headers, body)),
        );
        // The connection of a client that never stops sending may be reset before it reads the answer.
        const cut = body === 'endless' ? answers.filter((one) => one.status === 0).length : 0;
        const right = (one: Exchanged) => one.status === status || (body === 'endless' && one.status === 0);
        for (const one of answers) tally.case(right(one), `${name}: ${one.status}`);
        if (cut > 0)
          tally.measure(
            `${name}: ${cut} of ${answers.length} connections were reset before the client read the answer`,
          );
        const answered = percentile(
          answers.map((one) => one.answered_ms),
          99,
        );
        const sent = Math.max(...answers.map((one) => one.sent_bytes)) / MIB;
        tally.measure(`${name}: ${status}, p99 ${ms(answered)}, closed after at most ${sent.toFixed(1)} MiB`);
      }
      const complete = await exchange(plane, [`Content-Length: ${MIB}`], Buffer.alloc(MIB, 32));
      tally.case(complete.status === 400, `1 MiB of spaces: ${complete.status}`);
      const growth = peakMib(plane.pid) - before_mib;
      tally.check(growth <= GROWTH_MIB_MAX, `memory grew by ${growth.toFixed(0)} MiB`);
      tally.measure(
        `resident memory ${before_mib.toFixed(0)} MiB before, at most ${growth.toFixed(0)} MiB more, ${AT_ONCE} at a time`,
      );
      tally.check(
        (await sendRequest(plane.url, '/healthz', { method: 'GET' })).status === 200,
        'the service no longer answers',
      );
      return tally.outcome();
    }),
};

interface Exchanged {
  status: number;
  answered_ms: number;
  sent_bytes: number;
}

function chunk(bytes: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`${bytes.length.toString(16)}\r\n`),
    bytes,
    Buffer.from('\r\n0\r\n\r\n'),
  ]);
}

/** Sends a body until its end or that of the connection; `endless` continues as long as the listener accepts data. */
function exchange(plane: TestPlane, headers: string[], body: Buffer | 'endless'): Promise<Exchanged> {
  const socket = connect(portOf(plane), '127.0.0.1');
  const piece = body === 'endless' ? chunk(Buffer.alloc(64 * 1024, 32)).subarray(0, -5) : body;
  const begun_ms = performance.now();
  const result: Exchanged = { status: 0, answered_ms: 0, sent_bytes: 0 };
  return new Promise((resolve) => {
    let over = false;
    socket.on('error', () => {});
    socket.on('data', (data) => {
      if (result.status !== 0) return;
      result.status = Number(/^HTTP\/1\.1 (\d+)/.exec(data.toString('latin1'))?.[1] ?? 0);
      result.answered_ms = performance.now() - begun_ms;
      // Everything is sent, and the answer has arrived.
      if (over) socket.end();
    });
    socket.on('close', () => resolve(result));
    socket.on('connect', async () => {
      const head = [
        'POST /api/agents HTTP/1.1',
        `Host: 127.0.0.1:${portOf(plane)}`,
        `Authorization: Bearer ${plane.token}`,
      ];
      socket.write(`${[...head, 'Content-Type: application/json', ...headers].join('\r\n')}\r\n\r\n`);
      do {
        await new Promise<void>((written) => socket.write(piece, () => written()));
        result.sent_bytes += piece.length;
      } while (body === 'endless' && !socket.destroyed);
      over = true;
      if (result.status !== 0) socket.end();
    });
  });
}

// --- smuggling ----------------------------------------------------------------------------------------------------------

export const smuggling: FaultRow = {
  number: 37,
  fault:
    'CL.TE, TE.CL, duplicate Host or length, bare line feeds, folded headers, and a request hidden behind ' +
    'them',
  expected: '400, and the connection is closed; the hidden request is not served',
  default_n: 50,
  run: (n) =>
    withProgram(async (plane) => {
      const tally = new Tally();
      const { token } = await plane.client.call('createToken', { body: { name: 'front' } });
      const { host } = new URL(plane.url);
      const made = JSON.stringify({ name: 'smuggled' });
      const hidden = `POST /api/tokens HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${plane.token}\r\nContent-Type: application/json\r\nContent-Length: ${made.length}\r\n\r\n${made}`;
      const auth = `Authorization: Bearer ${token}`;
      const hosts: UnclearRequest[] = [
        { name: 'Host twice', lines: ['GET /api/me HTTP/1.1', 'Host: HOST', 'Host: HOST', auth], body: '' },
        {
          name: 'two different Hosts',
          lines: ['GET /api/me HTTP/1.1', 'Host: HOST', 'Host: evil', auth],
          body: '',
        },
        { name: 'no Host', lines: ['GET /api/me HTTP/1.1', auth], body: '' },
      ];
      const unclear = unclearRequests(token);
      for (const request of [...unclear, ...hosts]) {
        // An ambiguous request is followed by another one on the same connection.
        const more = unclear.includes(request) ? hidden : '';
        await forEachConcurrently(upTo(n), AT_ONCE, async () => {
          const received = await raw(
            plane,
            Buffer.concat([bytesOf(request, host, hidden), Buffer.from(more)]),
          );
          const status = Number(/^HTTP\/1\.1 (\d+)/.exec(received.text)?.[1] ?? 0);
          const answers = received.text.match(/HTTP\/1\.1 \d/g)?.length ?? 0;
          tally.case(status === 400 && answers === 1, `${request.name}: ${status}, ${answers} answers`);
          tally.check(received.ended, `${request.name}: the connection stays open`);
        });
      }
      const tokens = (await plane.client.call('listTokens')) as { name: string }[];
      const served = tokens.filter(({ name }) => name === 'smuggled').length;
      tally.check(served === 0, `${served} hidden requests were served`);
      tally.measure(
        `${unclear.length + hosts.length} variants, ${n} times each; hidden requests served: ${served}`,
      );
      return tally.outcome();
    }),
};

const ENDS_MS = 5_000;

/** Sends bytes and returns everything that comes back. `ended`: the listener closed the connection within `ENDS_MS`. */
function raw(plane: TestPlane, bytes: Buffer): Promise<{ text: string; ended: boolean }> {
  const socket = connect(portOf(plane), '127.0.0.1');
  let text = '';
  let ended = true;
  return new Promise((resolve) => {
    socket.setTimeout(ENDS_MS, () => {
      ended = false;
      socket.destroy();
    });
    socket.on('error', () => {});
    socket.on('data', (data) => {
      text += data.toString('latin1');
    });
    socket.on('close', () => resolve({ text, ended }));
    socket.on('connect', () => socket.write(bytes));
  });
}

// --- slowness -----------------------------------------------------------------------------------------------------------

export const slowness: FaultRow = {
  number: 38,
  fault: 'connections that send a byte now and then: half of them in their headers, half in a body',
  expected: `other API requests are answered within ${P99_MS_MAX} ms (p99)`,
  default_n: 5_000,
  run: (n) =>
    withProgram(async (plane) => {
      const tally = new Tally();
      const quiet = await latencies(plane);
      const before_mib = rssMib(plane.pid);
      forgetPeak(plane.pid);
      const args: SlowClientsArgs = { port: portOf(plane), token: plane.token, sockets: n };
      const clients = new Child('slow-clients', args);
      let { open, ended } = await clients.next<SlowClientsReport>();
      while (open < 0.95 * n) {
        await sleep(100);
        ({ open, ended } = await clients.request<SlowClientsReport>({}));
      }
      const under = await latencies(plane);
      ({ open, ended } = await clients.request<SlowClientsReport>({}));
      await clients.end();
      const [p99, quiet_p99] = [percentile(under, 99), percentile(quiet, 99)];
      tally.n = n;
      tally.check(p99 < P99_MS_MAX, `p99 ${ms(p99)}`);
      tally.measure(
        `${under.length} requests: p50 ${ms(percentile(under, 50))}, p99 ${ms(p99)}, ${(p99 / quiet_p99).toFixed(1)} times the p99 without slow clients (${ms(quiet_p99)})`,
      );
      tally.measure(`${open} connections at the end, ${ended} closed by the service before`);
      tally.measure(
        `resident memory ${before_mib.toFixed(0)} MiB before, at most ${peakMib(plane.pid).toFixed(0)} MiB`,
      );
      return tally.outcome();
    }),
};

/** The latencies of consecutive requests over 15 seconds, each on a new connection, like those of new clients. */
async function latencies(plane: TestPlane): Promise<number[]> {
  const found: number[] = [];
  const until_ms = performance.now() + 15_000;
  while (performance.now() < until_ms) {
    const begun_ms = performance.now();
    const { status } = await sendRequest(plane.url, '/api/me', { method: 'GET', token: plane.token });
    if (status !== 200) throw new Error(`another client got ${status}`);
    found.push(performance.now() - begun_ms);
    await sleep(5);
  }
  return found;
}

// --- hosts and origins ------------------------------------------------------------------------------------------------------

export const origins: FaultRow = {
  number: 45,
  fault: 'foreign hosts (DNS rebinding), foreign origins, and forms of other sites, all with a valid token',
  expected: 'rejected, and nothing is changed',
  default_n: 50,
  run: (n) =>
    withProgram(async (plane) => {
      const tally = new Tally();
      const { host } = new URL(plane.url);
      const body = JSON.stringify({ name: 'canary' });
      const form = 'name=canary';
      const type = (value: string) => ({ 'content-type': value });
      const requests: [name: string, status: number, headers: Record<string, string>, body: string][] = [
        ...foreignHosts(portOf(plane)).map((name): (typeof requests)[number] => [
          `Host ${name}`,
          421,
          { host: name },
          body,
        ]),
        ...foreignOrigins(host, portOf(plane)).map((origin): (typeof requests)[number] => [
          `Origin ${origin}`,
          403,
          { origin },
          body,
        ]),
        ['Sec-Fetch-Site cross-site', 403, { 'sec-fetch-site': 'cross-site' }, body],
        ['text/plain', 415, type('text/plain'), body],
        ['text/plain that looks like JSON', 415, type('text/plain;application/json'), body],
        ['a form', 415, type('application/x-www-form-urlencoded'), form],
        ['a multipart form', 415, type('multipart/form-data; boundary=x'), `--x\r\n\r\n${form}\r\n--x--`],
      ];
      const statuses: string[] = [];
      for (const [name, status, headers, sent] of requests) {
        await forEachConcurrently(upTo(n), AT_ONCE, async () => {
          const answer = await sendRequest(plane.url, '/api/tokens', {
            token: plane.token,
            body: sent,
            headers,
          });
          tally.case(answer.status === status, `${name}: ${answer.status}`);
          statuses.push(String(answer.status));
        });
      }
      const tokens = (await plane.client.call('listTokens')) as { name: string }[];
      tally.check(!tokens.some(({ name }) => name === 'canary'), 'a token was created');
      const preflight = await sendRequest(plane.url, '/api/tokens', {
        method: 'OPTIONS',
        headers: { origin: 'https://evil.example' },
      });
      tally.case(preflight.status === 403, `a preflight: ${preflight.status}`);
      tally.measure(counts(statuses));
      return tally.outcome();
    }),
};
