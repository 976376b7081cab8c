/** For those who watch the service: `/healthz` and `/readyz` say yes or no and nothing else, `/metrics` is for root or this machine. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { authorize } from '../domain/policy.ts';
import { Problem, problems } from '../domain/problem.ts';
import { isFromHere } from './guard.ts';
import type { Metrics } from './metrics.ts';
import { bearerCaller, type MountOptions } from './mount.ts';

export interface HealthOptions extends MountOptions {
  ready(): boolean;
  metrics: Metrics;
}

export function mountHealth(app: FastifyInstance, options: HealthOptions): void {
  const method = ['GET', 'HEAD'];
  app.route({ method, url: '/healthz', handler: () => ({ status: 'ok' }) });
  app.route({
    method,
    url: '/readyz',
    handler: () => {
      if (!options.ready()) throw notReady();
      return { status: 'ok' };
    },
  });
  app.route({
    method,
    url: '/metrics',
    handler: async (request, reply) => {
      await allowMetrics(request, options);
      return reply.type(options.metrics.registry.contentType).send(await options.metrics.text());
    },
  });
}

async function allowMetrics(request: FastifyRequest, options: HealthOptions): Promise<void> {
  if (request.headers.authorization === undefined) {
    if (!options.behind_proxy && isFromHere(request.raw)) return;
    throw problems.missingToken();
  }
  authorize(await bearerCaller(request, options), 'metrics.read');
}

export function notReady(): Problem {
  return new Problem('unavailable', 'not_ready', 'service is not ready');
}
