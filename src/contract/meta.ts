/** The API's description of itself. */
import { z } from 'zod';
import { route } from './route.ts';

export const metaRoutes = {
  getOpenapi: route({
    method: 'GET',
    path: '/api/openapi.json',
    action: 'api.describe',
    tag: 'Description',
    summary: 'This description',
    answers: { 200: z.record(z.string(), z.unknown()) },
  }),
  getDocs: route({
    method: 'GET',
    path: '/api/openapi/docs',
    action: 'api.describe',
    tag: 'Description',
    summary: 'This description as a page that can call the endpoints',
    answers: { 200: z.string() },
    raw: 'html',
  }),
};
