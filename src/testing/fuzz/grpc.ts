/**
 * Fuzzes both internal gRPC listeners, a node's and the plane's for actors: random messages of the protocol, malformed frames
 * and HTTP/2, with a valid token, an invalid one or none. No call without a valid token may succeed, and none may cause a fault.
 */
import { readFile, writeFile } from 'node:fs/promises';
import http2, { type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import net from 'node:net';
import { join } from 'node:path';
import tls from 'node:tls';
import { create, toBinary } from '@bufbuild/protobuf';
import { systemClock } from '../../base/clock.ts';
import { actorMethods } from '../../features/actors/contract.ts';
import { ActorService, CallRequestSchema } from '../../link/proto/actor_pb.ts';
import { AttachRequestSchema, JoinService, NodeService, PlaneHelloSchema } from '../../link/proto/node_pb.ts';
import { mintToken, type TokenSettings } from '../../link/trust/tokens.ts';
import { formatPosition, LINK_HEADER, type LinkPosition, versionInfo } from '../../link/wire.ts';
import { TestAgentNode } from '../agent-node.ts';
import type { TestPlane } from '../plane.ts';
import { type EntryPoint, Finding, forEachConcurrently } from './entry-point.ts';
import { almostValid, anything, jsonOf, type KnownValues, type Shape, shapeOf, text } from './malformed.ts';
import { type KnownFieldValues, messageBytes } from './protobuf.ts';
import { garbled, Rng } from './rng.ts';
import { Watch } from './watch.ts';

const COMMANDS = 150;
const ATTACHES = 10;
const ACTOR_CALLS = 100;
const BROKEN_CONNECTIONS = 20;
const AT_ONCE = 8;
const ANSWER_MS = 30_000;
/** How long to wait for a stream that may stay open. */
const OPEN_MS = 150;
const BROKEN_MS = 300;
const MIB = 1024 * 1024;
const POSITION_MAX = 2 ** 53 - 1_000;

/** The plane's shared secret, and the certificate authority of its certificate. */
interface Trust {
  settings: TokenSettings;
  ca: string;
}

interface Call {
  path: string;
  headers: Record<string, string>;
  body: Buffer;
  /** The listener must reject the call, whatever it contains. */
  unauthorized: boolean;
  /** A stream that may stay open. */
  open: boolean;
}

interface Answer {
  http: number;
  grpc: string | null;
}

/** `actor_port`: where the plane listens for actors. */
export async function openGrpcFuzz(plane: TestPlane, actor_port: number): Promise<EntryPoint> {
  const node = await TestAgentNode.open(plane, {
    id: 'fuzzed',
    env: { SVC_INTERNAL_GRPC_SECURITY_MODE: 'tls' },
  });
  // From here on, only this process connects to it.
  await plane.client.call('deleteAgentNode', { params: { node_id: node.id } });
  const trust = await readTrust(plane);
  const node_peer = new Peer(node.port, trust.ca);
  const watches = [
    new Watch(plane, () => plane.client.call('getMe')),
    new Watch(node, async () => {
      const health = {
        path: pathOf(NodeService.typeName, 'GetHealth'),
        body: framed(Buffer.alloc(0)),
        open: false,
      };
      const answer = await node_peer.call({
        ...health,
        headers: await headersFor(trust),
        unauthorized: false,
      });
      if (answer.grpc !== '0')
        throw new Error(`the node answered a health check with gRPC status ${answer.grpc}`);
    }),
  ];

  const batch = async (seed: number) => {
    const rng = new Rng(seed);
    try {
      await commands(rng, node, trust, node_peer);
      await actorCalls(rng, plane, trust, actor_port);
      for (const port of [node.port, actor_port]) {
        const cases = Array.from({ length: BROKEN_CONNECTIONS }, () => brokenBytes(rng));
        await forEachConcurrently(cases, AT_ONCE, ({ secure, bytes }) =>
          sendBroken(port, secure ? trust.ca : null, bytes),
        );
      }
      for (const watch of watches) await watch.check();
    } catch (error) {
      throw new Finding('grpc', seed, (error as Error).message);
    }
    return COMMANDS + ATTACHES + ACTOR_CALLS + 2 * BROKEN_CONNECTIONS;
  };
  return {
    name: 'grpc',
    batch,
    close: async () => {
      node_peer.close();
      await node.close();
    },
  };
}

async function readTrust(plane: TestPlane): Promise<Trust> {
  const file = (name: string) => readFile(join(plane.data_dir, 'internal-grpc', name), 'utf8');
  const shared_secret = (await file('auth_secret.txt')).trimEnd();
  return { settings: { shared_secret, issuer: 'svc', audience: 'svc-internal' }, ca: await file('ca.pem') };
}

// --- the node's listener ----------------------------------------------------------------------------------------------------

/** Sends calls while a link is open, then malformed attempts to open a link. */
async function commands(rng: Rng, node: TestAgentNode, trust: Trust, entry: Peer): Promise<void> {
  const position = await nextPosition(node);
  const link = await attach(entry, node, trust, position);
  const makers = Array.from({ length: COMMANDS }, () => callMaker(rng, node, position));
  await forEachConcurrently(makers, AT_ONCE, async (makeCall, i) => {
    const call = await makeCall(trust);
    expectNoFault(await entry.call(call), call, i);
  });
  link.destroy();
  for (let n = 1; n <= ATTACHES; n++) {
    const hello = helloBytes(node.id, { ...position, epoch: position.epoch + n });
    const later = Array.from({ length: rng.below(4) }, () =>
      messageBytes(rng, AttachRequestSchema, knownFieldValues(node), 0.3),
    );
    const body = Buffer.concat(
      [rng.chance(0.2) ? garbled(rng, hello) : hello, ...later].map((bytes) => framed(bytes)),
    );
    const call: Call = {
      path: pathOf(NodeService.typeName, 'Attach'),
      headers: await headersFor(trust),
      body: rng.chance(0.3) ? garbled(rng, body) : body,
      unauthorized: false,
      open: true,
    };
    expectNoFault(await entry.call(call), call, n);
  }
}

/** A link position that is later than all earlier ones of the node. */
async function nextPosition(node: TestAgentNode): Promise<LinkPosition> {
  const path = join(node.data_dir, 'node.json');
  const state = JSON.parse(await readFile(path, 'utf8')) as { latest: LinkPosition | null };
  const incarnation = (state.latest?.incarnation ?? 0) + 1;
  if (incarnation < POSITION_MAX && (state.latest?.epoch ?? 0) < POSITION_MAX)
    return { plane_id: 'pln_fuzz', incarnation, epoch: 1 };
  // Garbled bytes used the last possible position.
  await node.kill('SIGTERM');
  await writeFile(path, JSON.stringify({ ...state, latest: null }));
  await node.start();
  return { plane_id: 'pln_fuzz', incarnation: 1, epoch: 1 };
}

function helloBytes(nodeId: string, { plane_id, incarnation, epoch }: LinkPosition): Buffer {
  const value = create(PlaneHelloSchema, {
    nodeId,
    planeId: plane_id,
    incarnation: BigInt(incarnation),
    epoch: BigInt(epoch),
    speaks: versionInfo(),
  });
  return Buffer.from(
    toBinary(AttachRequestSchema, create(AttachRequestSchema, { body: { case: 'hello', value } })),
  );
}

/** Opens a link like a plane, and discards what the node sends. */
async function attach(
  entry: Peer,
  node: TestAgentNode,
  trust: Trust,
  position: LinkPosition,
): Promise<ClientHttp2Stream> {
  const stream = await entry.stream(pathOf(NodeService.typeName, 'Attach'), await headersFor(trust));
  stream.write(framed(helloBytes(node.id, position)));
  await new Promise<void>((resolve, reject) => {
    stream.once('data', () => resolve());
    stream.once('close', () => reject(new Error('the node rejects the link')));
  });
  stream.resume();
  return stream;
}

function callMaker(rng: Rng, node: TestAgentNode, position: LinkPosition): (trust: Trust) => Promise<Call> {
  const service = rng.chance(0.1) ? JoinService : NodeService;
  const method = rng.pick(service.methods.filter(({ name }) => name !== 'Attach'));
  const error_rate = rng.pick([0, 0.05, 0.2, 0.5]);
  const values = knownFieldValues(node);
  const count = method.methodKind === 'unary' ? (rng.chance(0.05) ? rng.below(3) : 1) : rng.below(5);
  const messages = Array.from({ length: count }, () => messageBytes(rng, method.input, values, error_rate));
  let body = Buffer.concat(
    messages.map((bytes) => (rng.chance(error_rate / 2) ? oddFrame(rng, bytes) : framed(bytes))),
  );
  let type = 'application/grpc+proto';
  if (rng.chance(error_rate / 2)) {
    type = rng.pick([
      'application/json',
      'application/connect+json',
      'application/proto',
      'application/grpc-web',
      'text/plain',
      '',
    ]);
    if (type.includes('json')) body = Buffer.from(jsonOf(anything(rng)));
  }
  const token = rng.chance(0.15) ? rng.pick(['none', 'actor', 'garbled', 'other'] as const) : 'good';
  const more = oddHeaders(rng, error_rate);
  const unknown = rng.chance(0.02);
  const link = rng.chance(0.05) ? text(rng).replace(/[^\x20-\x7e]/g, '') : formatPosition(position);
  return async (trust) => ({
    path: pathOf(service.typeName, unknown ? 'None' : method.name),
    headers: { ...(await headersFor(trust, token)), 'content-type': type, [LINK_HEADER]: link, ...more },
    body,
    unauthorized: token !== 'good' || service === JoinService,
    open: method.methodKind !== 'unary',
  });
}

/** Values of the fields that decide what runs on this machine, which must not be random. */
function knownFieldValues(node: TestAgentNode): KnownFieldValues {
  const session = (rng: Rng) => `ses_${String(rng.below(4)).repeat(16)}`;
  return (name, rng) => {
    switch (name) {
      case 'session_id':
        return session(rng);
      case 'agent_id':
        return session(rng).replace('ses', 'agt');
      case 'argv':
        return rng.pick(['/bin/true', '/bin/echo', '/no/such/program']);
      case 'program':
        return rng.pick(['true', 'none']);
      case 'workdir':
      case 'root':
      case 'worktree_root':
        return rng.pick([node.work, `${node.work}/none`, '/']);
      case 'repo':
        return node.work;
      case 'stream':
        return rng.pick(['stdout', 'stderr']);
      case 'on_exit':
        return 'kill';
      case 'node_id':
        return node.id;
      default:
        return undefined;
    }
  };
}

// --- the plane's listener for actors -----------------------------------------------------------------------------------

async function actorCalls(rng: Rng, plane: TestPlane, trust: Trust, port: number): Promise<void> {
  const spec = {
    leader_member_id: 'lead',
    members: [{ member_id: 'lead' }, { member_id: 'dev' }],
    steps: [{ step_key: 'a' }],
  };
  const team = await plane.client.call('createTeam', { body: { name: `acted ${rng.next()}`, spec } });
  const run = await plane.client.call('createRun', { params: { team_id: team.id } });
  const actors = [`lead@${team.id}`, `dev@${team.id}`, 'user:ana', 'lead', 'leader', 'user'];
  const known: Record<string, string[]> = {
    actor_id: actors,
    to: actors,
    run_id: [run.id],
    step_key: ['a', 'b'],
    member_id: ['lead', 'dev'],
  };
  const values: KnownValues = (name, at) =>
    known[name] && at.chance(0.8) ? at.pick(known[name]) : undefined;
  const calls = Array.from({ length: ACTOR_CALLS }, () => {
    const [method, shape] = rng.pick(rng.chance(0.05) ? all_methods : nonblocking);
    const error_rate = rng.pick([0, 0.05, 0.2, 0.5]);
    const params = rng.chance(error_rate / 4)
      ? text(rng).toWellFormed()
      : jsonOf(almostValid(rng, shape, values, error_rate));
    const name = rng.chance(error_rate / 4) ? text(rng).toWellFormed() : method;
    const message = Buffer.from(
      toBinary(CallRequestSchema, create(CallRequestSchema, { method: name, params })),
    );
    const body = rng.chance(error_rate / 4)
      ? oddFrame(rng, message)
      : framed(rng.chance(error_rate / 4) ? garbled(rng, message) : message);
    const kind: TokenKind = rng.chance(0.1)
      ? rng.pick(['none', 'garbled', 'other', 'good'] as const)
      : 'actor';
    return {
      body,
      kind,
      subject: rng.pick([...actors.slice(0, 3), '', 'none@none', text(rng).toWellFormed()]),
      more: oddHeaders(rng, error_rate),
    };
  });
  // The number of concurrent calls per connection is limited.
  const peers = Array.from({ length: AT_ONCE }, () => new Peer(port, trust.ca));
  try {
    await Promise.all(
      peers.map(async (peer, n) => {
        for (let i = n; i < calls.length; i += peers.length) {
          const { body, kind, subject, more } = calls[i]!;
          const headers = { ...(await headersFor(trust, kind, subject)), ...more };
          const call: Call = {
            path: pathOf(ActorService.typeName, 'Call'),
            headers,
            body,
            unauthorized: kind !== 'actor',
            open: false,
          };
          expectNoFault(await peer.call(call), call, i);
        }
      }),
    );
  } finally {
    for (const peer of peers) peer.close();
    const params = { team_id: team.id, run_id: run.id };
    await plane.client.call('cancelRun', { params }).catch(() => {});
    await plane.client.call('deleteTeam', { params }).catch(() => {});
  }
}

const all_methods = Object.entries(actorMethods).map(([name, { params }]): [string, Shape] => [
  name,
  shapeOf(params),
]);
/** All methods except the one that waits for messages. */
const nonblocking = all_methods.filter(([name]) => name !== 'receive');

// --- the wire -------------------------------------------------------------------------------------------------------------

type TokenKind = 'good' | 'none' | 'actor' | 'garbled' | 'other';

async function headersFor(
  trust: Trust,
  kind: TokenKind = 'good',
  subject = 'pln_fuzz',
): Promise<Record<string, string>> {
  const headers = { 'content-type': 'application/grpc+proto', te: 'trailers' };
  if (kind === 'none') return headers;
  const settings =
    kind === 'other'
      ? { ...trust.settings, shared_secret: 'another secret of 32 bytes or more' }
      : trust.settings;
  const token = await mintToken(settings, subject, systemClock, {
    kind: kind === 'actor' ? 'actor' : 'link',
  });
  return { ...headers, authorization: `Bearer ${kind === 'garbled' ? token.slice(0, -2) : token}` };
}

function oddHeaders(rng: Rng, error_rate: number): Record<string, string> {
  const headers: Record<string, string> = {};
  if (rng.chance(error_rate))
    headers['grpc-timeout'] = rng.pick(['1n', '0S', '-1S', '99999999H', '9'.repeat(40), 'x', '1M']);
  if (rng.chance(error_rate / 4)) headers['grpc-encoding'] = rng.pick(['gzip', 'identity', 'br', 'x']);
  if (rng.chance(error_rate / 4)) headers['connect-protocol-version'] = rng.pick(['1', '2', '']);
  if (rng.chance(error_rate / 4))
    headers[rng.pick(['__proto__', 'constructor', 'x-bin', 'grpc-accept-encoding'])] = rng.pick([
      'x',
      '!',
      '',
    ]);
  return headers;
}

function pathOf(service: string, method: string): string {
  return `/${service}/${method}`;
}

function framed(bytes: Buffer, flag = 0, length = bytes.length): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flag, 0);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, bytes]);
}

function oddFrame(rng: Rng, bytes: Buffer): Buffer {
  switch (rng.below(5)) {
    case 0:
      return framed(bytes, rng.pick([1, 2, 128, 255]));
    case 1:
      return framed(bytes, 0, rng.pick([0, bytes.length + 1, 2 ** 31, 2 ** 32 - 1, 5 * MIB]));
    case 2:
      return framed(Buffer.alloc(5 * MIB));
    case 3:
      return framed(bytes).subarray(0, rng.below(6));
    default:
      return garbled(rng, framed(bytes));
  }
}

/** An HTTP/2 connection that is opened again if the other side closes it. */
class Peer {
  readonly #port: number;
  readonly #ca: string;
  #session: ClientHttp2Session | null = null;

  constructor(port: number, ca: string) {
    this.#port = port;
    this.#ca = ca;
  }

  async stream(path: string, headers: Record<string, string>): Promise<ClientHttp2Stream> {
    const session = await this.#open();
    return session.request({ ':method': 'POST', ':path': path, ...headers }).on('error', () => {});
  }

  /** Returns the result of a call. A stream that stays open is cancelled after a moment. */
  async call(call: Call): Promise<Answer> {
    const { path, headers, body, open } = call;
    const stream = await this.stream(path, headers);
    const answer: Answer = { http: 0, grpc: null };
    stream.on('response', (head) => {
      answer.http = Number(head[':status']);
      answer.grpc ??= (head['grpc-status'] as string | undefined) ?? null;
    });
    stream.on('trailers', (trailers) => {
      answer.grpc = (trailers['grpc-status'] as string | undefined) ?? null;
    });
    stream.resume();
    stream.end(body);
    let hung = false;
    const timeout = setTimeout(
      () => {
        hung = !open;
        stream.close(http2.constants.NGHTTP2_CANCEL);
      },
      open ? OPEN_MS : ANSWER_MS,
    );
    // A body that is too large is answered before it was read; the stream would stay open until the other side's timeout.
    await new Promise<void>((resolve) => stream.once('end', () => resolve()).once('close', () => resolve()));
    clearTimeout(timeout);
    stream.close();
    if (hung) throw new Error(`no answer in ${ANSWER_MS / 1000} s: ${show(call)}`);
    return answer;
  }

  close(): void {
    this.#session?.destroy();
  }

  async #open(): Promise<ClientHttp2Session> {
    const known = this.#session;
    if (known && !known.closed && !known.destroyed) return known;
    const session = http2.connect(`https://127.0.0.1:${this.#port}`, {
      ca: this.#ca,
      checkServerIdentity: () => undefined,
    });
    this.#session = session;
    session.on('error', () => {});
    await new Promise<void>((resolve, reject) => {
      session.once('connect', () => resolve());
      session.once('close', () => reject(new Error('the listener accepts no connection')));
    });
    return session;
  }
}

function expectNoFault({ http, grpc }: Answer, call: Call, i: number): void {
  if (http >= 500 && http !== 503 && http !== 502) throw new Error(`call ${i}: ${show(call)}\nHTTP ${http}`);
  const plain = /^application\/(json|proto)$/.test(call.headers['content-type'] ?? '');
  const served = grpc === '0' || (plain && http === 200);
  if (call.unauthorized && served)
    throw new Error(`call ${i}: ${show(call)}\nan unauthorized call succeeded`);
}

function show({ path, headers, body }: Call): string {
  const shown = JSON.stringify({ ...headers, authorization: '…' });
  return `${path} ${shown} ${body.subarray(0, 600).toString('base64')} (${body.length} bytes)`;
}

/** Bytes that resemble HTTP/2, in TLS or in plain text. */
function brokenBytes(rng: Rng): { secure: boolean; bytes: Buffer } {
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  const frames = rng.some(20, () => {
    const content = rng.bytes(rng.below(40));
    const head = Buffer.alloc(9);
    head.writeUIntBE(rng.chance(0.9) ? content.length : rng.below(2 ** 24), 0, 3);
    head.writeUInt8(rng.below(12), 3);
    head.writeUInt8(rng.below(256), 4);
    head.writeUInt32BE(rng.pick([0, 1, 1, 3, 2, 2 ** 31 - 1]), 5);
    return Buffer.concat([head, content]);
  });
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
  const bytes = Buffer.concat([preface, settings, ...frames]);
  return { secure: rng.chance(0.8), bytes: rng.chance(0.3) ? garbled(rng, bytes) : bytes };
}

/** Sends the bytes and disconnects after a moment, unless the listener does. */
function sendBroken(port: number, ca: string | null, bytes: Buffer): Promise<void> {
  const socket = ca
    ? tls.connect({
        host: '127.0.0.1',
        port,
        ca,
        checkServerIdentity: () => undefined,
        ALPNProtocols: ['h2'],
      })
    : net.connect({ host: '127.0.0.1', port });
  return new Promise((resolve) => {
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    socket.resume();
    socket.write(bytes);
    socket.setTimeout(BROKEN_MS, () => socket.destroy());
  });
}
