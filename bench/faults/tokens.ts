/** Forged, expired and revoked tokens. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient } from '@connectrpc/connect';
import { systemClock } from '../../src/base/clock.ts';
import { Client } from '../../src/client/client.ts';
import { problemKinds } from '../../src/core/problem.ts';
import { type Connection, openConnection } from '../../src/link/plane/connection.ts';
import { ActorService } from '../../src/link/proto/actor_pb.ts';
import { NodeService } from '../../src/link/proto/node_pb.ts';
import { mintToken, type TokenSettings } from '../../src/link/trust/tokens.ts';
import { toProblem } from '../../src/link/wire.ts';
import { TokenForge } from '../../src/testing/forged-tokens.ts';
import { freePort, type TestPlane } from '../../src/testing/plane.ts';
import { percentile } from '../figure.ts';
import { forEachConcurrently, withNode, withProgram } from '../program.ts';
import { counts, type FaultRow, ms, outcomeOf, Tally, upTo } from './row.ts';

const ENDS_MS_MAX = 30_000;
const PASSWORD = 'quite a long password';

export const forged: FaultRow = {
  number: 39,
  fault:
    'tokens of the internal gRPC interface: none, with another algorithm, key, issuer, audience, type or ' +
    'time, or used twice; at both listeners',
  expected: 'always `unauthorized`',
  default_n: 20,
  run: async (n) => {
    const tally = new Tally();
    const actor_port = await freePort();
    await withNode(
      async (plane, node) => {
        const settings = await settingsOf(plane);
        const [near, far] = [await dial(plane, actor_port), await dial(plane, node.port)];
        const entries = [
          {
            name: 'a node',
            typ: 'svc-internal+jwt',
            kind: 'link' as const,
            call: (token: string | null) => health(far, token),
          },
          {
            name: 'the plane',
            typ: 'svc-actor+jwt',
            kind: 'actor' as const,
            call: (token: string | null) => whoami(near, token),
          },
        ];
        for (const { name, typ, kind, call } of entries) {
          const answers: string[] = [];
          const refuse = async (what: string, token: string | null) => {
            const answer = await call(token);
            answers.push(answer);
            tally.case(answer === 'unauthorized', `${name}, ${what}: ${answer}`);
          };
          const good = () => mintToken(settings, kind === 'actor' ? '' : 'pln_x', systemClock, { kind });
          for (let round = 0; round < n; round++) {
            const forge = new TokenForge(settings, Math.floor(Date.now() / 1000), { typ, sub: '' });
            for (const [what, make] of forge.all()) await refuse(what, await make());
            await refuse('no token', null);
            const other = kind === 'actor' ? 'link' : 'actor';
            await refuse(
              'a token of the other listener',
              await mintToken(settings, '', systemClock, { kind: other }),
            );
            const once = await good();
            const first = await call(once);
            tally.case(first === 'ok', `${name}, a good token: ${first}`);
            await refuse('a token that was used', once);
          }
          tally.measure(`${name}: ${counts(answers)}`);
        }
        near.close();
        far.close();
      },
      { env: { SVC_INTERNAL_GRPC_SECURITY_MODE: 'tls' } },
      { SVC_INTERNAL_GRPC_LISTEN: `127.0.0.1:${actor_port}` },
    );
    return tally.outcome();
  },
};

async function settingsOf(plane: TestPlane): Promise<TokenSettings> {
  const text = await readFile(join(plane.data_dir, 'internal-grpc/auth_secret.txt'), 'utf8');
  return { shared_secret: text.split('\n', 1)[0]!, issuer: 'svc', audience: 'svc-internal' };
}

async function dial(plane: TestPlane, port: number): Promise<Connection> {
  const ca = await readFile(join(plane.data_dir, 'internal-grpc/ca.pem'), 'utf8');
  return openConnection({ host: '127.0.0.1', port, servername: '127.0.0.1', tls: { ca } });
}

const bearer = (token: string | null) =>
  token === null ? {} : { headers: { authorization: `Bearer ${token}` } };

function health({ transport }: Connection, token: string | null): Promise<string> {
  return wordOf(createClient(NodeService, transport).getHealth({}, bearer(token)));
}

function whoami({ transport }: Connection, token: string | null): Promise<string> {
  return wordOf(
    createClient(ActorService, transport).call({ method: 'whoami', params: '{}' }, bearer(token)),
  );
}

async function wordOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'ok',
    (error: unknown) => toProblem(error, problemKinds).message,
  );
}

// --- bearer tokens ------------------------------------------------------------------------------------------------------

interface User {
  id: string;
  username: string;
  token: string;
}

export const ended: FaultRow = {
  number: 40,
  fault:
    'a bearer token after logout, a change of the password or role, the end of the sign-in, or deletion of ' +
    'the user; with open streams',
  expected: '401 at once; the streams end within 30 s',
  default_n: 10,
  run: (n) =>
    withProgram(async (plane) => {
      const tally = new Tally();
      const as = (token: string) => new Client({ url: plane.url, token });
      const root = plane.client;
      const ways: Record<string, (user: User) => Promise<unknown>> = {
        logout: ({ token }) => as(token).call('logout'),
        'password changed elsewhere': async ({ username }) => {
          const { token } = await as('').call('login', { body: { username, password: PASSWORD } });
          const body = { current_password: PASSWORD, new_password: 'quite another password' };
          await as(token).call('changePassword', { body });
        },
        'role changed': ({ id }) =>
          root.call('updateUser', { params: { user_id: id }, body: { role: 'root' } }),
        'sign-in ended elsewhere': async ({ username }) => {
          const { token } = await as('').call('login', { body: { username, password: PASSWORD } });
          const sign_ins = (await as(token).call('listSignIns')) as { id: string; current: boolean }[];
          const other = sign_ins.find(({ current }) => !current)!;
          await as(token).call('endSignIn', { params: { sign_in_id: other.id } });
        },
        'user deleted': ({ id }) => root.call('deleteUser', { params: { user_id: id } }),
      };
      for (const [way, end] of Object.entries(ways)) {
        const refused: number[] = [];
        const closed: number[] = [];
        await forEachConcurrently(upTo(n), 5, async (i) => {
          const user = await addUser(plane, `${way.replaceAll(' ', '-')}-${i}`);
          const streams = await Promise.all([
            as(user.token).open('followAll', { query: {} }),
            as(user.token).open('followAll', { query: {} }),
          ]);
          await end(user);
          const begun_ms = performance.now();
          const outcome = await outcomeOf(as(user.token).call('getMe'));
          refused.push(performance.now() - begun_ms);
          tally.case(outcome === 'invalid token', `${way}: ${outcome}`);
          await Promise.all(streams.map(readToEnd));
          closed.push(performance.now() - begun_ms);
        });
        const last = Math.max(...closed);
        tally.check(last <= ENDS_MS_MAX, `${way}: a stream stays open for ${ms(last)}`);
        tally.measure(
          `${way}: 401 after ${ms(percentile(refused, 99))}, streams closed after at most ${ms(last)}`,
        );
      }
      return tally.outcome();
    }),
};

async function addUser(plane: TestPlane, username: string): Promise<User> {
  const { id } = await plane.client.call('createUser', {
    body: { username, password: PASSWORD, role: 'user' },
  });
  const anybody = new Client({ url: plane.url });
  const { token } = await anybody.call('login', { body: { username, password: PASSWORD } });
  return { id, username, token };
}

async function readToEnd(response: Response): Promise<void> {
  try {
    for await (const _ of response.body!);
  } catch {
    // A stream that is interrupted has also ended.
  }
}
