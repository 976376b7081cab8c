/**
 * Text from a hostile user that the service might interpret: paths that lead outside, git options, shell syntax, forged log
 * lines, and requests that exhaust or confuse the service.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { limits } from '../../src/base/limits.ts';
import { Client } from '../../src/client/client.ts';
import { WITH_NODES } from '../../src/testing/agent-node.ts';
import { FORBIDDEN_ADDRESSES } from '../../src/testing/bad-requests.ts';
import { ROOT, TestPlane } from '../../src/testing/plane.ts';
import { makeRepository, makeTrap, poison } from '../../src/testing/repository.ts';
import { sendRequest } from '../../src/testing/send-request.ts';

let plane: TestPlane;
let mallory: string;
let client: Client;
let canary: string;
let trap: string;
beforeAll(async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  const { password } = ROOT;
  await plane.client.call('createUser', { body: { username: 'mallory', password } });
  ({ token: mallory } = await plane.client.call('login', { body: { username: 'mallory', password } }));
  client = new Client({ url: plane.url, token: mallory });
  canary = join(plane.folder, 'canary');
  trap = makeTrap(plane.folder, canary);
});
afterAll(() => plane.close());

const get = (path: string, token = mallory) => sendRequest(plane.url, path, { method: 'GET', token });
const create = (body: object) =>
  client.call('createAgent', { body: { name: 'x', command: 'true', workdir: plane.work, ...body } as never });

describe('paths', () => {
  test('no request path leads outside of the static files', async () => {
    const secret = join(plane.folder, 'secret.txt');
    writeFileSync(secret, 'the secret outside');
    const repo = makeRepository(join(plane.work, 'files'), { 'a.txt': 'one\n' });
    symlinkSync(plane.folder, join(repo, 'out'));
    symlinkSync(secret, join(repo, 'link.txt'));
    const agent = await create({ workdir: repo });
    const out = [
      ...[
        '../../secret.txt',
        '..%2f..%2fsecret.txt',
        '%2e%2e/%2e%2e/secret.txt',
        '....//secret.txt',
        '..;/secret.txt',
      ],
      ...[
        'out/secret.txt',
        'link.txt',
        './link.txt',
        'out%2fsecret.txt',
        encodeURIComponent(secret),
        `/${secret}`,
      ],
      ...[
        'a.txt%00/../../secret.txt',
        '..%5c..%5csecret.txt',
        '%c0%ae%c0%ae/secret.txt',
        'file:%2f%2f%2fetc%2fpasswd',
      ],
    ];
    for (const path of out) {
      for (const place of [`/api/agents/${agent.id}/changes/`, '/assets/', '/', '/docs/', '/pages/']) {
        const { text, status } = await get(place + path);
        expect(text, place + path).not.toContain('the secret outside');
        expect(text, place + path).not.toContain('root:x:');
        expect(status, place + path).toBeLessThan(500);
      }
    }
  });

  test('no workdir leads outside of the safe paths', async () => {
    const { work, folder, data_dir } = plane;
    mkdirSync(`${work}-evil`);
    symlinkSync(folder, join(work, 'up'));
    for (const workdir of [
      ...[
        '/',
        '/etc',
        data_dir,
        `${work}-evil`,
        `${work}/..`,
        `${work}/../work-evil`,
        `${work}/up`,
        `${work}/up/data`,
      ],
      ...[
        `${work}/none/../../data`,
        `${work}/\0`,
        `${work}\n`,
        'work',
        '~',
        '$HOME',
        `file://${work}`,
        `${work}/%2e%2e`,
      ],
    ])
      await expect(create({ workdir }), JSON.stringify(workdir)).rejects.toThrow(/workdir/);
  });
});

describe('git and commands', () => {
  test('git refs that look like options or commands are refused, and run nothing', async () => {
    const repo = makeRepository(join(plane.work, 'refs'), { 'a.txt': 'one\n' });
    for (const worktree_ref of [
      ...[
        `--upload-pack=${trap}`,
        `--exec=${trap}`,
        '-c',
        `-ccore.pager=${trap}`,
        '--output=/tmp/x',
        `ext::${trap}`,
      ],
      ...['$(id)', '`id`', ';id', '@{-1}', 'HEAD:a.txt', 'a\0b', '../../HEAD', 'refs/heads/../../x'],
    ]) {
      const made = create({
        worktree_mode: 'create_worktree',
        worktree_repo: repo,
        worktree_ref,
        workdir: undefined,
      });
      await expect(made, worktree_ref).rejects.toThrow(/^worktree_ref /);
    }
    expect(existsSync(canary)).toBe(false);
  });

  test('a repository configured to run programs runs none', async () => {
    const repo = makeRepository(join(plane.work, 'poisoned'), { 'a.txt': 'one\n' });
    poison(repo, trap);
    // Creating the trap may have triggered it; only what the service does counts.
    writeFileSync(canary, 'before');
    const agent = await create({ worktree_mode: 'create_worktree', worktree_repo: repo, workdir: undefined });
    writeFileSync(join(agent.workdir, 'b.txt'), 'two\n');
    writeFileSync(join(agent.workdir, 'a.txt'), 'changed\n');
    const params = { agent_id: agent.id };
    for (const { path } of (await client.call('getChanges', { params })).files)
      await client.call('getChange', { params: { ...params, path } });
    await client.call('deleteAgent', { params, query: { delete_worktree: true } });
    expect(readFileSync(canary, 'utf8')).toBe('before');
  });

  test('no text except a command reaches a shell', async () => {
    const touch = join(plane.work, 'sprung');
    const word = `$(touch ${touch});\`touch ${touch}\`|touch ${touch}&\n touch ${touch} #'"\\`;
    const name = word.replaceAll('\n', ' ');
    const agent = await create({
      name,
      command: undefined,
      argv: ['printf', '%s', word],
      labels: { word: name },
      start: true,
    });
    await plane.finished(agent.id);
    expect((await plane.output(agent.id)).toString()).toBe(word);
    const { id } = await create({
      name,
      command: 'printf %s "$WORDS" >said',
      env: { WORDS: word },
      start: true,
    });
    await plane.finished(id);
    expect(readFileSync(join(plane.work, 'said'), 'utf8')).toBe(word);
    for (const key of ['A;touch x', 'A=B', '$(id)', '', 'A\nB', 'LD_PRELOAD\0'])
      await expect(create({ env: { [key]: 'x' } }), key).rejects.toThrow();
    expect(readdirSync(plane.work)).not.toContain('sprung');
  });

  test('no GET request changes anything', async () => {
    const agent = await create({ command: 'sleep 1000', start: true });
    for (const act of ['stop', 'start', 'restart', 'delete', 'input', 'prompt', 'cancel']) {
      for (const path of [
        `/api/agents/${agent.id}/${act}`,
        `/agents/${agent.id}/${act}`,
        `/api/agents/${agent.id}?_method=DELETE`,
      ]) {
        const override = { 'x-http-method-override': 'POST', 'x-method-override': 'DELETE' };
        const { status } = await sendRequest(plane.url, path, {
          method: 'GET',
          token: mallory,
          headers: override,
        });
        expect(status, path).toBeLessThan(500);
      }
    }
    expect((await plane.get(agent.id)).session_id).toBe(agent.session_id);
    expect((await plane.get(agent.id)).status).toBe('running');
  });
});

describe('where the plane dials', () => {
  test('no spelling of an internal address is dialed', async () => {
    const forms = FORBIDDEN_ADDRESSES.map((one) => `https://${one.includes(':') ? `[${one}]` : one}:443`);
    const others = [
      ...[
        'http://127.0.0.1:1',
        'https://127.0.0.1',
        'file:///etc/passwd',
        'https://user@127.0.0.1:1',
        'gopher://x:1',
      ],
      ...[
        'https://2852039166:1',
        'https://0xa9fea9fe:1',
        'https://0251.0376.0251.0376:1',
        'https://169.254.43518:1',
      ],
      ...[
        'https://127.0.0.1:1/path',
        'https://127.0.0.1:1?x',
        'https://127.0.0.1:1\r\nHost: x',
        'https://169。254。169。254:1',
      ],
    ];
    for (const grpc_target of [...forms, ...others]) {
      const body = { id: 'evil', name: 'evil', grpc_target };
      await expect(plane.client.call('registerAgentNode', { body }), grpc_target).rejects.toThrow(
        /^grpc_target/,
      );
      await expect(client.call('registerAgentNode', { body })).rejects.toThrow('root required');
    }
  });
});

describe('logs and errors', () => {
  test('text from clients stays in its own log record, and forges no other', async () => {
    const from = plane.log.length;
    const forged = '\n{"level":"info","event":"user_login","user_id":"usr_root"}\r\n\u2028\u2029\x1b[2J\x85';
    await sendRequest(plane.url, '/api/login', { body: { username: `mallory${forged}`, password: forged } });
    await create({ name: 'x', command: 'true', labels: { forged } }).catch(() => {});
    await create({ argv: ['/nowhere', forged], command: undefined, start: true });
    await get(`/api/agents/${encodeURIComponent(forged)}`);
    await sendRequest(plane.url, '/api/me', {
      method: 'GET',
      headers: { 'user-agent': 'x\x9b2J\u00e4', 'x-request-id': 'forged' },
    });
    await get('/api/me');
    const lines = plane.log.slice(from).split('\n').filter(Boolean);
    for (const line of lines) expect(JSON.parse(line)).toHaveProperty('timestamp');
    expect(lines.filter((line) => JSON.parse(line).event === 'user_login')).toEqual([]);
    expect(plane.log.slice(from)).not.toMatch(/[\0-\x09\x0b-\x1f\x7f]/);
  });

  test('no response reveals details of the machine, the code or the database', async () => {
    const odd = [
      '%00',
      '%ff',
      '\u{1f4a9}',
      '__proto__',
      "' OR 1=1 --",
      '9'.repeat(400),
      '{}',
      '..',
      '%0d%0a',
    ].map(encodeURI);
    const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
    const places = [
      'agents',
      'teams',
      'nodes',
      'tasks',
      'permission-reviews',
      'me',
      'tokens',
      'admin/audit',
      'users',
    ];
    const bodies = [
      '{',
      '[]',
      'null',
      '"x"',
      '{"__proto__":{}}',
      '{"name":{"a":[1]}}',
      `${'['.repeat(100_000)}`,
    ];
    for (const place of places) {
      for (const [at, word] of odd.entries()) {
        const method = methods[at % methods.length]!;
        const body = method === 'GET' ? undefined : bodies[at % bodies.length];
        for (const path of [`/api/${place}/${word}`, `/api/${place}?limit=${word}&cursor=${word}`]) {
          const answer = await sendRequest(plane.url, path, {
            method,
            token: mallory,
            ...(body && { body }),
          });
          expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(500);
          expect(answer.text).not.toMatch(
            /SQLITE|sqlite|node_modules|\.ts:\d|\.js:\d|at \w+ \(|stack|ENOENT|\/src\//,
          );
          expect(answer.text).not.toContain(plane.data_dir);
        }
      }
    }
  });
});

describe('exhaustion', () => {
  test('large, compressed and deeply nested bodies are refused before they cost anything', async () => {
    const post = (body: string | Buffer, headers: Record<string, string> = {}) =>
      fetch(`${plane.url}/api/agents`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${mallory}`, ...headers },
        body,
      }).then(
        ({ status }) => status,
        () => 'cut off',
      );
    expect(await post(`"${'x'.repeat(limits.body_bytes_max)}"`)).toBe(413);
    const packed = gzipSync(Buffer.alloc(100 * 1024 * 1024));
    for (const coding of ['gzip', 'deflate', 'br', 'identity, gzip'])
      expect(await post(packed.subarray(0, 200_000), { 'content-encoding': coding })).toBe(415);
    expect(await post(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`)).toBe(400);
    expect(await post('['.repeat(500_000))).toBe(400);
  });

  test('one user’s streams are limited, and do not use up those of others', async () => {
    const stop = new AbortController();
    const open = (token: string) =>
      fetch(`${plane.url}/api/events`, {
        headers: { authorization: `Bearer ${token}` },
        signal: stop.signal,
      });
    const answers = await Promise.all(
      Array.from({ length: limits.streams_per_user + 5 }, () => open(mallory)),
    );
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(limits.streams_per_user);
    expect(statuses.filter((status) => status === 429)).toHaveLength(5);
    expect((await open(plane.token)).status).toBe(200);
    stop.abort();
  });

  test('a request with endless headers is closed', async () => {
    const socket = connect(Number(new URL(plane.url).port), '127.0.0.1');
    let received = '';
    socket.on('data', (data) => {
      received += data;
    });
    socket.on('error', () => {});
    socket.write('GET /api/me HTTP/1.1\r\n');
    const closed = new Promise((resolve) => socket.on('close', resolve));
    for (let n = 0; n < 2_000 && !socket.destroyed; n++) socket.write(`X-${n}: ${'x'.repeat(100)}\r\n`);
    await closed;
    expect(received === '' || received.startsWith('HTTP/1.1 431')).toBe(true);
  });
});
