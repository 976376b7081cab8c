/**
 * A push service of tests, on loopback, with the devices that it delivers to: it holds every request against what push
 * services ask for (RFC 8030, and 8292 for the sender's word), and opens what was sealed for the device (RFC 8188 and 8291) by
 * means of its own, so that nothing is right only because both sides share a mistake.
 */
import {
  createDecipheriv,
  createECDH,
  createPublicKey,
  type ECDH,
  hash,
  hkdfSync,
  randomBytes,
  verify,
} from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { expect, vi } from 'vitest';
import type { PushMessage } from '../features/notifications/rules.ts';

const DAY_S = 86_400;

/** How the push service answers, instead of taking the message. */
export interface PushAnswer {
  status: number;
  headers?: Record<string, string>;
  /** Sent before the head: the answer waits for it. */
  after?: Promise<unknown>;
}

export interface PushHead {
  ttl: number;
  urgency: string;
  topic: string;
}

/** A browser on a device, as its push service knows it. */
export class TestDevice {
  readonly endpoint: string;
  readonly #pair: ECDH = createECDH('prime256v1');
  readonly #secret: Buffer = randomBytes(16);
  /** The service's key that it was subscribed for; null: none was asked for. */
  public_key: string | null = null;
  /** What arrived, opened, in order. */
  readonly messages: PushMessage[] = [];
  readonly heads: PushHead[] = [];
  /** How the next requests are answered, one each; then they are taken. */
  readonly answers: PushAnswer[] = [];
  /** Requests so far, taken or not. */
  asked = 0;

  constructor(endpoint: string) {
    this.endpoint = endpoint;
    this.#pair.generateKeys();
  }

  /** As a browser's `PushSubscription` gives them. */
  get keys(): { p256dh: string; auth: string } {
    return { p256dh: this.#pair.getPublicKey('base64url'), auth: this.#secret.toString('base64url') };
  }

  get fingerprint(): string {
    return hash('sha256', this.endpoint, 'base64url');
  }

  /** Waits for so many messages; answers the last. */
  async gets(count: number): Promise<PushMessage> {
    await vi.waitFor(() => expect(this.messages.length).toBeGreaterThanOrEqual(count), { timeout: 30_000 });
    expect(this.messages).toHaveLength(count);
    return this.messages.at(-1)!;
  }

  /** Waits for so many requests, taken or not. */
  async isAsked(count: number): Promise<void> {
    await vi.waitFor(() => expect(this.asked).toBeGreaterThanOrEqual(count), { timeout: 30_000 });
  }

  /** Opens a body that was sealed for this device. */
  open(body: Buffer): string {
    const salt = body.subarray(0, 16);
    const record_bytes = body.readUInt32BE(16);
    const id_bytes = body[20]!;
    const sender = body.subarray(21, 21 + id_bytes);
    const sealed = body.subarray(21 + id_bytes);
    expect(id_bytes).toBe(65);
    // One record: a push message has no others.
    expect(sealed.length).toBeLessThanOrEqual(record_bytes);
    const shared = this.#pair.computeSecret(sender);
    const info = Buffer.concat([Buffer.from('WebPush: info\0'), this.#pair.getPublicKey(), sender]);
    const key = derive(shared, this.#secret, info, 32);
    const content_key = derive(key, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16);
    const nonce = derive(key, salt, Buffer.from('Content-Encoding: nonce\0'), 12);
    const cipher = createDecipheriv('aes-128-gcm', content_key, nonce).setAuthTag(sealed.subarray(-16));
    const padded = Buffer.concat([cipher.update(sealed.subarray(0, -16)), cipher.final()]);
    const end = padded.findLastIndex((byte) => byte !== 0);
    // The delimiter of the last record.
    expect(padded[end]).toBe(2);
    return padded.subarray(0, end).toString('utf8');
  }
}

export class PushService {
  readonly #server: Server;
  readonly #devices = new Map<string, TestDevice>();
  /** What was wrong with requests. */
  readonly faults: string[] = [];
  #made = 0;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        this.faults.push(String(error));
        response.writeHead(400).end();
      });
    });
  }

  static async open(): Promise<PushService> {
    const service = new PushService();
    await once(service.#server.listen(0, '127.0.0.1'), 'listening');
    return service;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  device(): TestDevice {
    const path = `/push/${++this.#made}-${randomBytes(8).toString('hex')}`;
    const device = new TestDevice(`${this.origin}${path}`);
    this.#devices.set(path, device);
    return device;
  }

  /** From now on it does not know the device. */
  forget(device: TestDevice): void {
    this.#devices.delete(new URL(device.endpoint).pathname);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const device = this.#devices.get(request.url ?? '');
    if (!device) return void response.writeHead(410).end();
    device.asked += 1;
    this.#checkSender(request, device);
    const head = headOf(request, body);
    const answer = device.answers.shift();
    await answer?.after;
    if (answer && answer.status >= 300) return void response.writeHead(answer.status, answer.headers).end();
    device.messages.push(JSON.parse(device.open(body)));
    device.heads.push(head);
    response.writeHead(answer?.status ?? 201, answer?.headers).end();
  }

  /** The sender's word: an ES256 token for this origin, by the key that the device was subscribed for. */
  #checkSender({ headers }: IncomingMessage, device: TestDevice): void {
    const [, token = '', key = ''] = /^vapid t=([^,\s]+), k=(\S+)$/.exec(headers.authorization ?? '') ?? [];
    if (device.public_key !== null) expect(key).toBe(device.public_key);
    const [header = '', claims = '', signature = ''] = token.split('.');
    const point = Buffer.from(key, 'base64url');
    expect(point).toHaveLength(65);
    const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'));
    const jwk = { kty: 'EC', crv: 'P-256', x: x!, y: y! };
    const signed = verify(
      'sha256',
      Buffer.from(`${header}.${claims}`),
      { key: createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' },
      Buffer.from(signature, 'base64url'),
    );
    expect(signed).toBe(true);
    expect(read(header)).toMatchObject({ alg: 'ES256', typ: 'JWT' });
    const { aud, exp, sub } = read(claims) as { aud: string; exp: number; sub: string };
    expect(aud).toBe(this.origin);
    expect(sub).toMatch(/^(mailto:|https:)/);
    const now_s = Date.now() / 1000;
    expect(exp).toBeGreaterThan(now_s);
    expect(exp).toBeLessThanOrEqual(now_s + DAY_S);
  }
}

function headOf({ method, headers }: IncomingMessage, body: Buffer): PushHead {
  expect(method).toBe('POST');
  expect(headers['content-encoding']).toBe('aes128gcm');
  // What every push service takes.
  expect(body.length).toBeLessThanOrEqual(4096);
  expect(headers.ttl).toMatch(/^\d+$/);
  expect(headers.topic).toMatch(/^[A-Za-z0-9_-]{1,32}$/);
  return { ttl: Number(headers.ttl), urgency: String(headers.urgency), topic: String(headers.topic) };
}

function derive(secret: Uint8Array, salt: Uint8Array, info: Uint8Array, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, info, bytes));
}

function read(part: string): object {
  return JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
}
