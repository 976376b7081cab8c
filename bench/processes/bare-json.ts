/** A bare handler with the same server library, which answers one object as JSON. */
import fastify from 'fastify';
import { readArguments } from './read-arguments.ts';

const { body } = await readArguments<{ body: object }>();
const app = fastify();
app.get('/api/agents/:agent_id', async () => body);
await app.listen({ host: '127.0.0.1', port: 0 });
process.send!({ port: (app.server.address() as { port: number }).port });
