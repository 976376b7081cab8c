/** Malicious requests, for tests of the listener and of the whole program. */

export interface UnclearRequest {
  name: string;
  /** `HOST` stands for the listener's address. */
  lines: string[];
  /** `SMUGGLED` stands for a request that must never be served. */
  body: string;
  /** The line ending. Default: CRLF. */
  end?: string;
}

/** Requests that two HTTP parsers could interpret differently. Each gets one response, 400, and its connection is closed. */
export function unclearRequests(token: string): UnclearRequest[] {
  const post = 'POST /api/logout HTTP/1.1';
  const auth = `Authorization: Bearer ${token}`;
  const begin = [post, 'Host: HOST', auth];
  const hidden = '0\r\n\r\nSMUGGLED';
  return [
    { name: 'CL.TE', lines: [...begin, 'Content-Length: 4', 'Transfer-Encoding: chunked'], body: hidden },
    { name: 'TE.CL', lines: [...begin, 'Transfer-Encoding: chunked', 'Content-Length: 4'], body: hidden },
    {
      name: 'TE.TE',
      lines: [...begin, 'Transfer-Encoding: chunked', 'Transfer-Encoding: x'],
      body: hidden,
    },
    { name: 'an unknown coding', lines: [...begin, 'Transfer-Encoding: xchunked'], body: '0\r\n\r\n' },
    { name: 'two lengths', lines: [...begin, 'Content-Length: 0', 'Content-Length: 5'], body: 'abcde' },
    { name: 'a negative length', lines: [...begin, 'Content-Length: -1'], body: '' },
    { name: 'a folded header', lines: [post, 'Host: HOST', 'X-A: b', ' c', auth], body: '' },
    { name: 'a space before the colon', lines: [post, 'Host : HOST', auth], body: '' },
    { name: 'a NUL in a header', lines: [post, 'Host: HOST', 'X-A: a\0b', auth], body: '' },
    {
      name: 'a bad chunk size',
      lines: [...begin, 'Content-Type: application/json', 'Transfer-Encoding: chunked'],
      body: 'zz\r\n',
    },
    { name: 'not HTTP', lines: ['hello'], body: '' },
    { name: 'an unknown HTTP version', lines: ['GET /api/me HTTP/9.9', 'Host: HOST', auth], body: '' },
    { name: 'bare line feeds', lines: ['GET /api/me HTTP/1.1', 'Host: HOST', auth], body: '', end: '\n' },
  ];
}

export function bytesOf(request: UnclearRequest, host: string, smuggled: string): Buffer {
  const { lines, body, end = '\r\n' } = request;
  const head = lines.map((line) => line.replace('HOST', host)).join(end);
  return Buffer.from(`${head}${end}${end}${body.replace('SMUGGLED', smuggled)}`, 'latin1');
}

/** `Host` values that a listener on this port of loopback must reject. */
export function foreignHosts(port: number): string[] {
  return [
    'evil.example',
    `evil.example:${port}`,
    'localhost',
    'localhost:1',
    `localhost.evil.example:${port}`,
    `127.0.0.1.evil.example:${port}`,
    `127.0.0.1:${port}.evil.example`,
    `x@127.0.0.1:${port}`,
    `0.0.0.0:${port}`,
    `10.0.0.1:${port}`,
  ];
}

/** Origins that are not the listener's own, some of which resemble it. */
export function foreignOrigins(host: string, port: number): string[] {
  return [
    'null',
    'https://evil.example',
    `https://${host}`,
    `http://${host}.evil.example`,
    `http://${host}@evil.example`,
    `http://${host}/`,
    `http://evil-127.0.0.1:${port}`,
    'http://localhost',
    '',
  ];
}

/** Addresses that are forbidden in a `grpc_target`, in many notations: link-local, metadata, multicast and unspecified ones. */
export const FORBIDDEN_ADDRESSES = [
  '169.254.169.254',
  '169.254.170.2',
  '169.254.0.1',
  '100.100.100.200',
  '168.63.129.16',
  '192.0.0.192',
  '0.0.0.0',
  '0.1.2.3',
  '255.255.255.255',
  '224.0.0.1',
  '239.255.255.250',
  '240.0.0.1',
  '::',
  'fe80::1',
  'ff02::1',
  'fd00:ec2::254',
  'fd00:0ec2:0:0:0:0:0:254',
  'fd20:ce::254',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '0:0:0:0:0:ffff:a9fe:a9fe',
  '::ffff:0.0.0.0',
  '::ffff:224.0.0.1',
  '::ffff:100.100.100.200',
  '::169.254.169.254',
  '::a9fe:a9fe',
  '::7f00:1',
  '::808:808',
  '0:0:0:0:0:0:7f00:1',
  '::ffff:0:169.254.169.254',
  '64:ff9b::169.254.169.254',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1:a9fe:a9:fe00::',
  '2002:a9fe:a9fe::1',
  '2001:0:a9fe:a9fe::1',
];
