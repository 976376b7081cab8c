/** The tools of `svc mcp --actor`: each is one method of `contract/actor.ts`, in the actor and the run of the session. */
import { once } from 'node:events';
import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { type ActorMethod, type ActorParams, actorMethods } from '../contract/actor.ts';
import { Problem } from '../domain/problem.ts';
import { callPlane } from './actor-call.ts';
import type { Context } from './context.ts';
import { Failure } from './failure.ts';
import type { LocalOptions } from './options.ts';

/** What a model is told of each; what is missing here is no tool. */
const tools: Partial<Record<ActorMethod, string>> = {
  whoami: 'Who you are: your actor id, your role in the team, the team and the run.',
  'team-members': 'Who is in your team: actor ids, roles, descriptions and skills.',
  'run-members': 'How the members of your run are doing.',
  inbox: 'Your messages that you have not acknowledged, oldest first.',
  receive: 'Your messages; waits a few seconds where there is none.',
  ack: 'Acknowledge a message once you have dealt with it; until then it stays in your inbox.',
  send: 'Write to a member (its member_id), to `leader`, or to `user`. The payload is a JSON object, for example {"text": "…"}.',
  'step-list': 'The steps of your run. With step_key: that one with its prompt, input and output.',
  'step-add': 'Leaders: add a step for a member. It begins when the steps in depends_on are done.',
  'step-complete': 'Say that a step of yours is done, with its output.',
  'step-fail': 'Say that a step of yours cannot be done, and why.',
  'step-input-required':
    'Ask the humans for what a step of yours needs; then end your turn. You get the answer with a new one.',
  'run-complete': 'Leaders: end the run with its result.',
  'run-fail': 'Leaders: end the run without a result, and say why.',
  'time-trigger-list': 'The times at which you will get a message.',
  'time-trigger-set': 'Get a message later: one of at (RFC 3339), every_seconds and cron.',
  'time-trigger-cancel': 'Take back a time trigger.',
  'permission-review-list': 'Leaders: what workers ask for and wait for your answer to.',
  'permission-review-respond':
    'Leaders: answer a permission review by decision (allow or deny, once), by option_id, or by outcome cancelled.',
};

/** Serves until the client closes stdin, or Ctrl-C. */
export async function serveActorTools(context: Context, options: LocalOptions): Promise<void> {
  const { stdin, stdout, signal } = context.io;
  const ended = once(stdin, 'close', { signal }).catch(() => {});
  const transport = new StdioServerTransport(stdin, stdout);
  const handle = serveStdio(() => makeServer(context, options), { transport });
  await ended;
  await handle.close();
}

function makeServer(context: Context, options: LocalOptions): McpServer {
  const server = new McpServer({ name: 'svc', version: context.local.version });
  for (const [method, description] of Object.entries(tools) as [ActorMethod, string][]) {
    // As whom and in which run follows from the session.
    const { actor_id: _, run_id: __, ...shape } = (actorMethods[method].params as z.ZodObject).shape;
    const config = { description, inputSchema: z.object(shape) };
    server.registerTool(method.replaceAll('-', '_'), config, async (params) => {
      try {
        const asked = { method, actor_id: undefined, params: params as ActorParams<ActorMethod> };
        const answer = await callPlane(context, options, asked);
        return { content: [{ type: 'text', text: JSON.stringify(answer) }] };
      } catch (error) {
        if (!(error instanceof Problem || error instanceof Failure)) throw error;
        return { content: [{ type: 'text', text: error.message }], isError: true };
      }
    });
  }
  return server;
}
