/**
 * Sends bytes to the HTTP listener that are almost HTTP: requests with missing, repeated or folded lines or wrong line endings,
 * contradictory lengths, invalid chunks, several requests at once, split into pieces. The listener may only send valid answers,
 * or none. A request with an ambiguous length gets a single rejection.
 */
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { TestPlane } from '../plane.ts';
import { type EntryPoint, Finding, forEachConcurrently } from './entry-point.ts';
import { garbled, Rng } from './rng.ts';
import { Watch } from './watch.ts';

const CASES = 400;
const AT_ONCE = 40;
const ANSWER_MS = 60_000;
/** After this time without data, the answer counts as complete. */
const SILENT_MS = 100;
const MIB = 1024 * 1024;

interface Case {
  /** Written one after another. */
  pieces: Buffer[];
  /** The end of the body is ambiguous, so the request must be rejected. */
  ambiguous: boolean;
}

export async function openRawFuzz(plane: TestPlane): Promise<EntryPoint> {
  const { token } = await plane.client.call('createToken', { body: { name: 'raw' } });
  const watch = new Watch(plane, () => plane.client.call('getMe'));
  const batch = async (seed: number) => {
    const rng = new Rng(seed);
    const { host } = new URL(plane.url);
    const cases = Array.from({ length: CASES }, () => makeCase(rng, host, token));
    await forEachConcurrently(cases, AT_ONCE, async (one, i) => {
      const fault = await transaction(plane.url, one).then(
        (answer) => faultOf(one, answer),
        (error: Error) => (plane.isRunning ? error.message : 'the program ended'),
      );
      if (fault !== null) throw new Finding('raw', seed, `case ${i}: ${show(one)}\n${fault}`);
    });
    await watch.check().catch((error: Error) => {
      throw new Finding('raw', seed, error.message);
    });
    return cases.length;
  };
  return { name: 'raw', batch, close: async () => {} };
}

function makeCase(rng: Rng, host: string, token: string): Case {
  const requests = Array.from({ length: rng.chance(0.2) ? 1 + rng.below(4) : 1 }, () =>
    requestOf(rng, host, token),
  );
  let bytes: Buffer = Buffer.concat(requests.map((one) => one.bytes));
  // The expected answer is known only for the first request, and only if it is sent unchanged.
  const mangled = rng.chance(0.4);
  if (mangled) bytes = garbled(rng, bytes.subarray(0, 64 * 1024));
  else if (rng.chance(0.1)) bytes = bytes.subarray(0, rng.below(bytes.length + 1));
  const pieces: Buffer[] = [];
  const count = rng.chance(0.3) ? 1 + rng.below(5) : 1;
  for (let remaining = count; remaining > 0; remaining--) {
    const end = remaining === 1 ? bytes.length : rng.below(bytes.length + 1);
    pieces.push(bytes.subarray(0, end));
    bytes = bytes.subarray(end);
  }
  return { pieces, ambiguous: !mangled && requests[0]!.ambiguous && pieces.length === 1 };
}

function requestOf(rng: Rng, host: string, token: string): { bytes: Buffer; ambiguous: boolean } {
  const end = rng.chance(0.05) ? rng.pick(['\n', '\r', '\r\r\n']) : '\r\n';
  const { headers, body, ambiguous } = bodyOf(rng);
  const lines = [
    `Host: ${rng.chance(0.05) ? rng.pick(['', 'evil.example', `${host}, ${host}`, `${host}\t`, '[::1', 'x'.repeat(300)]) : host}`,
    ...(rng.chance(0.9) ? [`Authorization: Bearer ${token}`] : []),
    ...headers,
  ];
  for (const line of rng.chance(0.5) ? rng.some(4, () => oddLine(rng, host)) : []) {
    lines.splice(rng.below(lines.length + 1), 0, line);
  }
  if (rng.chance(0.05)) lines.push(...Array.from({ length: 3_000 }, (_, i) => `X-${i}: ${i}`));
  const target = rng.chance(0.8)
    ? rng.pick(['/api/me', '/api/agents', '/healthz', '/', '/assets/x', '/api/actor/mailbox/send'])
    : rng.pick([
        '*',
        'http://evil.example/api/me',
        '//evil/api/me',
        '/api/%',
        '/api/\x80',
        '/api/me?\0',
        '/a b',
        `/${'x'.repeat(20_000)}`,
        '/api/../api/me',
        '/api/me#x',
        '',
      ]);
  const method = rng.chance(0.9)
    ? rng.pick(['GET', 'POST', 'PUT', 'DELETE', 'HEAD'])
    : rng.pick(['CONNECT', 'TRACE', 'OPTIONS', 'PRI', 'get', 'M-SEARCH', 'X'.repeat(300), '']);
  const version = rng.chance(0.95)
    ? 'HTTP/1.1'
    : rng.pick(['HTTP/1.0', 'HTTP/2.0', 'HTTP/1.1 ', 'HTTP/0.9', 'http/1.1', '']);
  const head = [`${method} ${target} ${version}`, ...lines].join(end);
  const odd =
    lines.includes('') || end !== '\r\n' || version !== 'HTTP/1.1' || method === '' || target === '';
  return {
    bytes: Buffer.concat([Buffer.from(`${head}${end}${end}`, 'latin1'), body]),
    ambiguous: ambiguous && !odd,
  };
}

function bodyOf(rng: Rng): { headers: string[]; body: Buffer; ambiguous: boolean } {
  const json = 'Content-Type: application/json';
  const text = Buffer.from('{"from_actor_id":"x"}');
  const chunks = () => Buffer.from(`${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`);
  switch (rng.below(12)) {
    case 0:
      return {
        headers: [json, 'Content-Length: 4', 'Transfer-Encoding: chunked'],
        body: chunks(),
        ambiguous: true,
      };
    case 1:
      return {
        headers: [json, 'Transfer-Encoding: chunked', `Content-Length: ${text.length}`],
        body: text,
        ambiguous: true,
      };
    case 2:
      return { headers: [json, 'Content-Length: 5', 'Content-Length: 21'], body: text, ambiguous: true };
    case 3: {
      const coding = rng.pick([
        'xchunked',
        'chunked, identity',
        'identity, chunked',
        'gzip',
        'chunked;x',
        '\x0bchunked',
        '"chunked"',
        'chunked, chunked',
      ]);
      return { headers: [json, `Transfer-Encoding: ${coding}`], body: chunks(), ambiguous: false };
    }
    case 4: {
      const size = rng.pick([
        'zz',
        '-1',
        '0x5',
        'ffffffffffffffff',
        '1'.repeat(40),
        '5;x=y',
        '5 ;',
        '',
        '5\t',
        '00000005',
      ]);
      return {
        headers: [json, 'Transfer-Encoding: chunked'],
        body: Buffer.from(`${size}\r\nhello\r\n0\r\n\r\n`),
        ambiguous: false,
      };
    }
    case 5:
      return {
        headers: [json, 'Transfer-Encoding: chunked'],
        body: Buffer.from(`${'1\r\n \r\n'.repeat(2_000)}0\r\nHost: evil\r\nX-T: 1\r\n\r\n`),
        ambiguous: false,
      };
    case 6: {
      const length = rng.pick([
        '-1',
        '+5',
        '5,5',
        '0x5',
        '1e3',
        '9'.repeat(30),
        '5 5',
        '',
        '18446744073709551616',
      ]);
      return { headers: [json, `Content-Length: ${length}`], body: text, ambiguous: false };
    }
    case 7: {
      const packed = gzipSync(Buffer.alloc(MIB));
      return {
        headers: [json, 'Content-Encoding: gzip', `Content-Length: ${packed.length}`],
        body: packed,
        ambiguous: false,
      };
    }
    case 8: {
      const bytes = MIB + rng.pick([-1, 0, 1]);
      return { headers: [json, `Content-Length: ${bytes}`], body: Buffer.alloc(bytes, 32), ambiguous: false };
    }
    case 9:
      return {
        headers: [json, `Content-Length: ${text.length}`, 'Expect: 100-continue'],
        body: text,
        ambiguous: false,
      };
    case 10:
      return { headers: [json, `Content-Length: ${text.length}`], body: text, ambiguous: false };
    default:
      return { headers: [], body: Buffer.alloc(0), ambiguous: false };
  }
}

function oddLine(rng: Rng, host: string): string {
  return rng.pick([
    ' folded',
    '\tfolded',
    'X-A : b',
    'X-A:b',
    ': no name',
    'no colon',
    'X-A: a\0b',
    'X-A: \x7f\x01',
    'X-A: \xff\xfe',
    'X\x80A: b',
    '__proto__: x',
    'constructor: x',
    `Host: ${host}`,
    'Host: evil.example',
    'Connection: close',
    'Connection: keep-alive, upgrade',
    'Upgrade: websocket',
    'Upgrade: h2c',
    'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA',
    'Origin: null',
    'Origin: http://evil.example',
    'Sec-Fetch-Site: cross-site',
    'Expect: 200-maybe',
    'Authorization: Bearer x',
    'Transfer-Encoding: identity',
    'Trailer: Host',
    'TE: trailers',
    'X-Forwarded-For: 1, 2, 3',
    `X-Long: ${'a'.repeat(rng.pick([1_000, 15_000, 17_000]))}`,
    '',
  ]);
}

/**
 * Sends the pieces of a case and reads the answers. After a moment without data it ends its side of the connection (earlier, an
 * answer in progress would be dropped), and reads until the listener closes the connection.
 */
function transaction(url: string, { pieces }: Case): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let text = '';
    let idle_timer: NodeJS.Timeout | undefined;
    socket.setEncoding('latin1').on('data', (part: string) => {
      text += part;
      idle_timer?.refresh();
    });
    socket.setTimeout(ANSWER_MS, () => {
      socket.destroy();
      reject(
        new Error(
          `the connection is still open after ${ANSWER_MS / 1000} s; received: ${text.slice(0, 500)}`,
        ),
      );
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
    socket.on('close', () => {
      clearTimeout(idle_timer);
      resolve(text);
    });
    socket.on('connect', async () => {
      socket.setNoDelay(true);
      for (const piece of pieces) {
        await new Promise<void>((written) => socket.write(piece, () => written()));
      }
      // Not before, because a piece could not be written after the end.
      if (!socket.destroyed) idle_timer = setTimeout(() => socket.end(), SILENT_MS);
    });
  });
}

function faultOf({ ambiguous }: Case, answer: string): string | null {
  const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
  const bad = statuses.find((status) => status >= 500 && status !== 502 && status !== 503);
  if (bad !== undefined) return `a server error: ${answer.slice(0, 1_000)}`;
  if (answer !== '' && !answer.startsWith('HTTP/1.1 ')) return `not HTTP: ${answer.slice(0, 500)}`;
  // An earlier error, such as 431, may be reported instead.
  const rejected =
    statuses.length === 0 || (statuses.length === 1 && (statuses[0] === 400 || statuses[0] === 431));
  if (ambiguous && !rejected) return `an ambiguous length is not rejected: ${answer.slice(0, 1_000)}`;
  return null;
}

function show({ pieces }: Case): string {
  return pieces.map((piece) => JSON.stringify(piece.toString('latin1').slice(0, 600))).join(' + ');
}
