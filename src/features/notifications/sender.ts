/**
 * Sends one message to one device through the push service of its browser. The library builds the request: it encrypts the
 * text for the device and adds a signature that identifies the plane. This module makes the connection: to a checked
 * address, with a time limit, without redirects, and reading only the head of the response.
 */
import { createHash } from 'node:crypto';
import { type IncomingMessage, request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import type { RequestDetails } from 'web-push';
import type { Clock } from '../../base/clock.ts';
import { isExhausted } from '../../base/files.ts';
import { AddressRefused, createResolver } from './endpoint.ts';
import type { PushKeyPair } from './keys.ts';
import { limits } from './limits.ts';
import type { PushMessage } from './rules.ts';
import { Slots } from './slots.ts';

/** The parts of a device that are needed for sending. */
export interface Target {
  user_id: string;
  endpoint: string;
  p256dh: string;
  auth: string;
}

/**
 * `gone`: the push service no longer knows the device. `later`: it may accept the message later. `refused`: it will not
 * accept this message.
 */
export type Outcome =
  | { kind: 'accepted' }
  | { kind: 'gone'; error: string }
  | { kind: 'later'; error: string; retry_after_ms: number }
  | { kind: 'refused'; error: string };

export interface SenderOptions {
  clock: Clock;
  /** `push.origins`. */
  own_origins: readonly string[];
  /** The contact for push services: a `mailto:` or `https:` address. */
  subject: string;
}

interface Answer {
  status: number;
  retry_after: string | undefined;
}

const urgencies: Record<PushMessage['kind'], 'normal' | 'high'> = {
  review: 'high',
  agent_failed: 'normal',
  run_ended: 'normal',
  closed: 'normal',
  test: 'high',
};

export class Sender {
  readonly #options: SenderOptions;
  readonly #closed = new AbortController();
  readonly #slots = new Slots(limits.push_sends_at_once, limits.push_sends_per_user);

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  get closed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** Aborts requests in progress. */
  close(): void {
    this.#closed.abort();
  }

  /**
   * `ttl_ms`: how long the push service may keep the message for an offline device. Throws errors that concern
   * neither the device nor its push service.
   */
  async send(target: Target, key: PushKeyPair, message: PushMessage, ttl_ms: number): Promise<Outcome> {
    const request = await this.#build(target, key, message, ttl_ms);
    try {
      return this.#read(await this.#slots.run(target.user_id, () => this.#post(request)));
    } catch (error) {
      if (isExhausted(error)) throw error;
      if (error instanceof AddressRefused) return { kind: 'refused', error: error.message };
      const { code, name } = error as NodeJS.ErrnoException;
      const why = name === 'TimeoutError' ? 'no answer in time' : (code ?? 'the connection failed');
      return { kind: 'later', error: `push service cannot be reached: ${why}`, retry_after_ms: 0 };
    }
  }

  async #build(target: Target, key: PushKeyPair, message: PushMessage, ttl_ms: number) {
    // Loaded with the first message, because most planes never send one.
    const { default: library } = await import('web-push');
    const { endpoint, p256dh, auth } = target;
    return library.generateRequestDetails({ endpoint, keys: { p256dh, auth } }, JSON.stringify(message), {
      TTL: Math.floor(ttl_ms / 1000),
      urgency: urgencies[message.kind],
      topic: hashTopic(message.tag),
      contentEncoding: 'aes128gcm',
      vapidDetails: { subject: this.#options.subject, ...key },
    });
  }

  #post({ endpoint, method, headers, body }: RequestDetails): Promise<Answer> {
    const url = new URL(endpoint);
    const request = url.protocol === 'https:' ? tlsRequest : plainRequest;
    const lookup = createResolver(url, this.#options.own_origins);
    const signal = AbortSignal.any([this.#closed.signal, AbortSignal.timeout(limits.push_send_ms)]);
    return new Promise((resolve, reject) => {
      const sent = request(url, { method, headers: { ...headers }, lookup, signal, agent: false });
      sent.on('error', (error) => reject(signal.aborted ? signal.reason : error));
      sent.once('response', (response: IncomingMessage) => {
        resolve({ status: response.statusCode ?? 0, retry_after: response.headers['retry-after'] });
        response.on('error', () => {}).destroy();
      });
      sent.end(body);
    });
  }

  #read({ status, retry_after }: Answer): Outcome {
    if (status >= 200 && status < 300) return { kind: 'accepted' };
    const error = `push service answered ${status}`;
    if (status === 404 || status === 410) return { kind: 'gone', error };
    if (status !== 429 && status < 500) return { kind: 'refused', error };
    return { kind: 'later', error, retry_after_ms: parseRetryAfter(retry_after, this.#options.clock.now()) };
  }
}

/** The topic by which a push service keeps only the newest message for an offline device. It does not reveal the tag. */
function hashTopic(tag: string): string {
  return createHash('sha256').update(tag).digest('base64url').slice(0, 32);
}

/** `Retry-After`: seconds or a date; 0 if it is absent or invalid. */
function parseRetryAfter(text: string | undefined, now: number): number {
  const ms = /^\d{1,9}$/.test(text ?? '') ? Number(text) * 1000 : Date.parse(text ?? '') - now;
  return ms > 0 ? Math.min(ms, limits.push_backoff_ms_max) : 0;
}
