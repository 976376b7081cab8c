/**
 * The tools of `svc mcp --actor`: each is a method of `features/actors/contract.ts`, called as the actor and in the
 * run of the session.
 */
import { once } from 'node:events';
import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import type { Context } from '../../../cli/context.ts';
import { Failure } from '../../../cli/failure.ts';
import type { LocalOptions } from '../../../cli/options.ts';
import { Problem } from '../../../core/problem.ts';
import { type ActorMethod, type ActorParams, actorMethods } from '../contract.ts';
import { PlaneCaller } from './actor-call.ts';

/** Serves until the client closes stdin or the user presses Ctrl-C. */
export async function serveActorTools(context: Context, options: LocalOptions): Promise<void> {
  const { stdin, stdout, signal } = context.io;
  const ended = once(stdin, 'close', { signal }).catch(() => {});
  const transport = new StdioServerTransport(stdin, stdout);
  const caller = new PlaneCaller(context, options);
  const handle = serveStdio(() => makeServer(context.local.version, caller), { transport });
  await ended;
  await handle.close();
  caller.close();
}

function makeServer(version: string, caller: PlaneCaller): McpServer {
  const server = new McpServer({ name: 'svc', version });
  for (const method of Object.keys(actorMethods) as ActorMethod[]) {
    const { params, tool } = actorMethods[method];
    // The session determines the actor and the run.
    const { actor_id: _, run_id: __, ...shape } = (params as z.ZodObject).shape;
    const config = { description: tool, inputSchema: z.object(shape) };
    server.registerTool(method.replaceAll('-', '_'), config, async (params) => {
      try {
        const call = { method, actor_id: undefined, params: params as ActorParams<ActorMethod> };
        const answer = await caller.call(call);
        return { content: [{ type: 'text', text: JSON.stringify(answer) }] };
      } catch (error) {
        if (!(error instanceof Problem || error instanceof Failure)) throw error;
        return { content: [{ type: 'text', text: error.message }], isError: true };
      }
    });
  }
  return server;
}
