/**
 * Monitoring endpoints: `/healthz` and `/readyz` return only a yes or no, and whether PostgreSQL answers, if it is used.
 * `/metrics` requires a token unless `metrics.open` is set.
 */
import type { FastifyInstance } from 'fastify';
import { authorize } from '../core/policy.ts';
import { problems } from '../core/problem.ts';
import type { Metrics } from './metrics.ts';
import { bearerCaller, type MountOptions } from './mount.ts';

export interface HealthOptions extends MountOptions {
  ready(): boolean;
  /** Whether the database's server answers. Absent: the database is embedded. */
  database_up?: () => boolean;
  metrics: Metrics;
  /** `metrics.open`. */
  metrics_open(): boolean;
}

/** Adds `/healthz`, `/readyz` and `/metrics`. */
export function mountHealth(app: FastifyInstance, options: HealthOptions): void {
  const method = ['GET', 'HEAD'];
  app.route({ method, url: '/healthz', handler: () => ({ status: 'ok' }) });
  app.route({
    method,
    url: '/readyz',
    handler: () => {
      if (!options.ready()) throw problems.notReady();
      if (!options.database_up) return { status: 'ok' };
      // It remains ready, because no other control plane would have the database either.
      return { status: 'ok', database: options.database_up() ? 'ok' : 'unreachable' };
    },
  });
  app.route({
    method,
    url: '/metrics',
    handler: async (request, reply) => {
      if (!options.metrics_open()) authorize(await bearerCaller(request, options), 'metrics.read');
      return reply.type(options.metrics.registry.contentType).send(await options.metrics.text());
    },
  });
}
