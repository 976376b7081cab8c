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
import { callPlane } from './actor-call.ts';

/** The description that a model sees. A method without one is not a tool. */
const tools: Partial<Record<ActorMethod, string>> = {
  whoami: 'Who you are: your actor id, your role in the team, the team and the run.',
  'team-members': 'Who is in your team: actor ids, roles, descriptions and skills.',
  'run-members': 'How the members of your run are doing.',
  inbox: 'Your messages that you have not acknowledged, oldest first.',
  receive: 'Your messages; waits a few seconds if the mailbox is empty.',
  ack: 'Acknowledge a message once you have dealt with it; until then it stays in your inbox.',
  send: 'Write to a member (its member_id), to `leader`, or to `user`. The payload is a JSON object, for example {"text": "…"}.',
  'step-list': 'The steps of your run. With step_key: that one with its prompt, input and output.',
  'step-add': 'Leaders: add a step for a member. It starts when the steps in depends_on are done.',
  'step-complete': 'Complete one of your steps, with its output.',
  'step-fail': 'Fail one of your steps, with the reason.',
  'step-input-required':
    'Ask a person for what one of your steps needs, then end your turn. The answer starts a new turn.',
  'run-complete': 'Leaders: complete the run with its result.',
  'run-fail': 'Leaders: fail the run, with the reason.',
  'time-trigger-list': 'Your time triggers.',
  'time-trigger-set': 'Schedule a message to yourself: one of at (RFC 3339), every_seconds and cron.',
  'time-trigger-cancel': 'Cancel a time trigger.',
  'permission-review-list': 'Leaders: permission requests of workers that wait for your answer.',
  'permission-review-respond':
    'Leaders: answer a permission review by decision (allow or deny, once), by option_id, or by outcome cancelled.',
};

/** Serves until the client closes stdin or the user presses Ctrl-C. */
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
    // The session determines the actor and the run.
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
