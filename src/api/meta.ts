/** The routes that serve the API description. */
import { z } from 'zod';
import { route } from './route.ts';

export const metaRoutes = {
  getOpenapi: route({
    method: 'GET',
    path: '/api/openapi.json',
    action: 'api.describe',
    tag: 'Description',
    summary: 'Get the API description',
    answers: { 200: z.record(z.string(), z.unknown()) },
  }),
  getDocs: route({
    method: 'GET',
    path: '/api/openapi/docs',
    action: 'api.describe',
    tag: 'Description',
    summary: 'Get the API description as an interactive page',
    answers: { 200: z.string() },
    raw: 'html',
  }),
};
