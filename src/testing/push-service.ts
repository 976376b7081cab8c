/**
 * A push service for tests on loopback, with its devices. It checks every request against RFC 8030, and the sender's signature
 * against RFC 8292. It decrypts messages for devices (RFC 8188 and RFC 8291) with a separate implementation, so that tests detect
 * errors of the sender's library.
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

/** The response of the push service to a request. */
export interface PushAnswer {
  status: number;
  headers?: Record<string, string>;
  /** The response is sent after this promise resolves. */
  after?: Promise<unknown>;
}

export interface PushHead {
  ttl: number;
  urgency: string;
  topic: string;
}

/** A browser on a device that has subscribed to push messages. */
export class TestDevice {
  readonly endpoint: string;
  readonly #pair: ECDH = createECDH('prime256v1');
  readonly #secret: Buffer = randomBytes(16);
  /** The public key for which it subscribed; null: not checked. */
  public_key: string | null = null;
  /** The decrypted messages, in order. */
  readonly messages: PushMessage[] = [];
  readonly heads: PushHead[] = [];
  /** The responses to the next requests, one each. Later requests are accepted. */
  readonly answers: PushAnswer[] = [];
  /** The number of requests so far, accepted or not. */
  request_count = 0;

  constructor(endpoint: string) {
    this.endpoint = endpoint;
    this.#pair.generateKeys();
  }

  /** Its keys, in the form of a browser's `PushSubscription`. */
  get keys(): { p256dh: string; auth: string } {
    return { p256dh: this.#pair.getPublicKey('base64url'), auth: this.#secret.toString('base64url') };
  }

  get fingerprint(): string {
    return hash('sha256', this.endpoint, 'base64url');
  }

  /** Waits until there are exactly `count` messages; returns the last one. */
  async untilMessages(count: number): Promise<PushMessage> {
    await vi.waitFor(() => expect(this.messages.length).toBeGreaterThanOrEqual(count), { timeout: 30_000 });
    expect(this.messages).toHaveLength(count);
    return this.messages.at(-1)!;
  }

  /** Waits for `count` requests, accepted or not. */
  async untilRequests(count: number): Promise<void> {
    await vi.waitFor(() => expect(this.request_count).toBeGreaterThanOrEqual(count), { timeout: 30_000 });
  }

  /** Decrypts a body that was encrypted for this device. */
  open(body: Buffer): string {
    const salt = body.subarray(0, 16);
    const record_bytes = body.readUInt32BE(16);
    const id_bytes = body[20]!;
    const sender = body.subarray(21, 21 + id_bytes);
    const sealed = body.subarray(21 + id_bytes);
    expect(id_bytes).toBe(65);
    // A push message consists of a single record.
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
  /** The errors in requests. */
  readonly faults: string[] = [];
  #device_count = 0;

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
    const path = `/push/${++this.#device_count}-${randomBytes(8).toString('hex')}`;
    const device = new TestDevice(`${this.origin}${path}`);
    this.#devices.set(path, device);
    return device;
  }

  /** Forgets a device: requests for it get 410. */
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
    device.request_count += 1;
    this.#checkSender(request, device);
    const head = headOf(request, body);
    const answer = device.answers.shift();
    await answer?.after;
    if (answer && answer.status >= 300) return void response.writeHead(answer.status, answer.headers).end();
    device.messages.push(JSON.parse(device.open(body)));
    device.heads.push(head);
    response.writeHead(answer?.status ?? 201, answer?.headers).end();
  }

  /** Checks the VAPID token: ES256, for this origin, signed with the key for which the device subscribed. */
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
  // The size that every push service accepts.
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
