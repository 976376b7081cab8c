/**
 * What a plane that stands by does with requests: it forwards them to the active plane over mutual TLS, and holds them for a
 * short time while no plane is active. `forwarded-request.ts` sends one request once.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { Agent } from 'node:https';
import type { Logger } from '../base/log.ts';
import { Problem, problems } from '../core/problem.ts';
import { dropRest } from './body.ts';
import {
  type ActivePlane,
  type Attempt,
  forwardOnce,
  hasBody,
  isReady,
  type PeerAccess,
} from './forwarded-request.ts';
import { clientAddress, isForwarded } from './guard.ts';
import { limits } from './limits.ts';
import type { Listener } from './listener.ts';
import type { IsPlane, PlaneIdentity } from './peers.ts';
import { type PlainRequest, requestIds, sendProblem } from './problem-response.ts';

export interface ForwarderOptions {
  /** The public listener of this plane. Its guard checks Host and Origin. Pass `handle` to its `serve`. */
  listener: Pick<Listener, 'guard' | 'headers' | 'connections'>;
  /** `server.behind_proxy` of this plane. */
  behind_proxy: boolean;
  /** The identity that this plane shows to the active one. Read for every request, so that it may change. */
  identity(): PlaneIdentity;
  /** Whether the certificate of the plane to which requests are forwarded is that of a plane. Its host name is not checked. */
  isPlane: IsPlane;
  log: Logger;
  /** How long a request waits for an active plane; `limits.forward_hold_ms` by default. */
  hold_ms?: number;
  /** How long requests to a plane that is no longer active may still be answered; `limits.forward_grace_ms` by default. */
  grace_ms?: number;
}

/**
 * Forwards requests until this plane becomes active.
 *
 * While no plane is active, GET and HEAD wait. Other requests wait only if it is certain that none of them was carried out:
 * no plane could be connected to, or the plane refused a request without a body. Whoever waits longer than `hold_ms` gets a 503
 * `no_active_plane`. If the connection breaks before the response, GET and HEAD are sent again; other requests get a 502
 * `forward_failed`. If it breaks later, so does the response, and an event stream ends.
 *
 * `/healthz` and `/readyz` are answered here. A request that another plane forwarded is not forwarded again (503
 * `no_active_plane`).
 */
export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #access: PeerAccess;
  readonly #newId = requestIds();
  /** Requests that wait for a change. */
  readonly #held = new Set<() => void>();
  /** Requests on their way to the active plane. */
  readonly #attempts = new Set<Attempt>();
  #target: ActivePlane | null = null;
  #handler: RequestListener | null = null;
  #draining = false;
  #reported: ActivePlane | null = null;
  #probe: Promise<boolean> | null = null;

  constructor(options: ForwarderOptions) {
    this.#options = options;
    this.#access = {
      // Without cached sessions, every connection checks the certificate again.
      agent: new Agent({ keepAlive: true, timeout: limits.peer_idle_ms, maxCachedSessions: 0 }),
      identity: options.identity,
      isPlane: options.isPlane,
    };
  }

  /**
   * Forwards requests to this plane from now on; null: no plane is active. Requests that wait are sent to it. Requests to the
   * previous plane may still be answered for `grace_ms`. Does nothing if the address is the same.
   */
  setTarget(target: ActivePlane | null): void {
    if (isSame(target, this.#target)) return;
    this.#target = target;
    this.#reported = null;
    // Without a known plane, the previous one may still be active.
    if (target !== null) this.#abandonOthers();
    this.#wake();
  }

  /**
   * Ends forwarding, because this plane has become active: requests that wait, and all that `handle` still receives, are passed
   * to `handler` (`HttpServer.handler`). Requests on their way to the previous plane may still be answered for `grace_ms`.
   */
  takeOver(handler: RequestListener): void {
    this.#handler = handler;
    this.#target = null;
    this.#abandonOthers();
    this.#wake();
  }

  /**
   * Before the listener closes: rejects new requests and those that wait with a 503 `draining`, and ends event streams. Other
   * requests on their way may still be answered. Idempotent.
   */
  drain(): void {
    this.#draining = true;
    for (const attempt of this.#attempts) attempt.endStream();
    this.#wake();
  }

  /** Answers a request of the public listener. */
  readonly handle: RequestListener = (request, response) => {
    if (this.#handler !== null) {
      this.#handler(request, response);
      return;
    }
    const plain = { request, response, request_id: this.#newId() };
    this.#answer(plain).catch((error: unknown) => {
      if (response.headersSent || response.destroyed) {
        response.destroy();
        return;
      }
      if (!(error instanceof Problem)) {
        this.#options.log.error({ err: error, request_id: plain.request_id }, 'request failed');
      }
      if (this.#draining) response.setHeader('connection', 'close');
      const problem = error instanceof Problem ? error : undefined;
      sendProblem(plain, problem, this.#options.listener.headers);
    });
  };

  async #answer(plain: PlainRequest): Promise<void> {
    const { request } = plain;
    if (this.#draining) throw problems.draining();
    if (isForwarded(request)) throw problems.noActivePlane();
    const url = request.url ?? '/';
    this.#options.listener.guard.check(request, !url.startsWith('/api'));
    const path = url.split('?', 1)[0];
    if (isRead(request) && path === '/healthz') this.#sendOk(plain);
    else if (isRead(request) && path === '/readyz') {
      if (!(await this.#isReady())) throw problems.notReady();
      this.#sendOk(plain);
    } else await this.#forward(plain);
  }

  /** Sends a request until it is answered. Throws the Problem that answers it otherwise. */
  async #forward(plain: PlainRequest): Promise<void> {
    const { request, response } = plain;
    let deadline: number | null = null;
    for (;;) {
      if (response.destroyed) return;
      if (this.#handler !== null) {
        this.#handler(request, response);
        return;
      }
      if (this.#draining) throw problems.draining();
      const target = this.#target;
      if (target !== null && (await this.#attempt(target, plain))) return;
      deadline ??= performance.now() + (this.#options.hold_ms ?? limits.forward_hold_ms);
      const left_ms = deadline - performance.now();
      if (left_ms <= 0 || this.#held.size >= limits.held_requests_max) throw problems.noActivePlane();
      await this.#nextChange(target, response, left_ms);
    }
  }

  /** True if the request is answered; false if it must be sent again. Throws the Problem that answers it otherwise. */
  async #attempt(target: ActivePlane, { request, response }: PlainRequest): Promise<boolean> {
    const { listener, behind_proxy, log } = this.#options;
    const attempt = forwardOnce(this.#access, {
      target,
      request,
      response,
      client: clientAddress(request, behind_proxy),
      strict_transport: listener.headers['strict-transport-security'] ?? null,
      onCaller: (user_id) => listener.connections.find(request.socket)?.own(user_id),
    });
    this.#attempts.add(attempt);
    const { outcome, error } = await attempt.ended;
    this.#attempts.delete(attempt);
    if (outcome === 'answered') {
      this.#reported = null;
      return true;
    }
    if (error && this.#reported !== target && this.#target === target) {
      this.#reported = target;
      log.warn({ err: error, ...target }, 'the active plane cannot be reached');
    }
    if (isRead(request) || outcome === 'not_sent') return false;
    if (outcome === 'broken') throw problems.forwardFailed();
    if (hasBody(request)) throw problems.noActivePlane();
    return false;
  }

  /** Resolves when the request may be sent again: at a change, after a short time, or when the client disconnects. */
  #nextChange(tried: ActivePlane | null, response: ServerResponse, left_ms: number): Promise<void> {
    if (this.#target !== tried || this.#handler !== null || this.#draining) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#held.delete(done);
        response.off('close', done);
        resolve();
      };
      const timer = setTimeout(done, tried === null ? left_ms : Math.min(left_ms, limits.forward_retry_ms));
      this.#held.add(done);
      response.on('close', done);
    });
  }

  #wake(): void {
    for (const done of [...this.#held]) done();
  }

  /** After the grace period, gives up requests to planes that are still not the active one. */
  #abandonOthers(): void {
    const others = [...this.#attempts].filter((attempt) => !isSame(attempt.target, this.#target));
    if (others.length === 0) return;
    const timer = setTimeout(() => {
      for (const attempt of others) {
        if (!isSame(attempt.target, this.#target)) attempt.abandon();
      }
    }, this.#options.grace_ms ?? limits.forward_grace_ms);
    timer.unref();
  }

  /** Whether the active plane answers that it is ready. Concurrent callers share one request. */
  async #isReady(): Promise<boolean> {
    if (this.#target === null) return false;
    this.#probe ??= isReady(this.#access, this.#target).finally(() => {
      this.#probe = null;
    });
    return this.#probe;
  }

  #sendOk({ request, response, request_id }: PlainRequest): void {
    const body = JSON.stringify({ status: 'ok' });
    dropRest(request);
    response.writeHead(200, {
      ...this.#options.listener.headers,
      'x-request-id': request_id,
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
    });
    response.end(body);
  }
}

/** Such a request changes nothing and can be repeated. Its body is not read. */
function isRead({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD';
}

function isSame(one: ActivePlane | null, other: ActivePlane | null): boolean {
  return one?.host === other?.host && one?.port === other?.port;
}
