/**
 * A token bucket per caller, with a sustained rate per second and a maximum burst. The number of buckets is bounded. If
 * there are too many, the oldest ones are reset.
 */

import type { Settings } from '../core/config.ts';
import { problems } from '../core/problem.ts';
import { limits } from './limits.ts';

export interface Rate {
  per_second: number;
  burst: number;
}

/** The rate that the operator has set. */
export function requestRate(settings: Settings): Rate {
  return {
    per_second: settings.get('limits.requests_per_second'),
    burst: settings.get('limits.requests_burst'),
  };
}

export function multiplied({ per_second, burst }: Rate, factor: number): Rate {
  return { per_second: per_second * factor, burst: burst * factor };
}

interface Bucket {
  tokens: number;
  at_ms: number;
}

export class RateLimiter {
  readonly #buckets = new Map<string, Bucket>();
  readonly #now: () => number;

  /** `now`: a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Counts one request of `key`, or throws a 429 with the time after which to retry. */
  take(key: string, rate: Rate): void {
    const now = this.#now();
    const size = rate.burst;
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      this.#makeRoom();
      bucket = { tokens: size, at_ms: now };
      this.#buckets.set(key, bucket);
    } else {
      bucket.tokens = Math.min(size, bucket.tokens + ((now - bucket.at_ms) / 1000) * rate.per_second);
      bucket.at_ms = now;
    }
    if (bucket.tokens < 1) {
      const wait_s = Math.max(1, Math.ceil((1 - bucket.tokens) / rate.per_second));
      throw problems.tooManyRequests({ retry_after_s: wait_s });
    }
    bucket.tokens -= 1;
  }

  #makeRoom(): void {
    if (this.#buckets.size < limits.rate_buckets_max) return;
    let excess = Math.ceil(limits.rate_buckets_max / 8);
    for (const key of this.#buckets.keys()) {
      if (excess-- === 0) break;
      this.#buckets.delete(key);
    }
  }
}
