/** Commands for the thread of a task: say something, read it, and follow it. */
import type { Command } from 'commander';
import { type Api, type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { exitCodes, Failure, usage } from '../../../cli/failure.ts';
import { parseMessageArguments, withJson } from '../../../cli/json-options.ts';
import { integer, remote } from '../../../cli/options.ts';
import { jsonText, print, printJson, printStatus, supportsColor } from '../../../cli/output.ts';
import { printable, printableLines } from '../../../cli/terminal.ts';
import { onConnectionChange, reportConnection } from '../../agents/commands/follow.ts';
import { paint } from '../../conversations/commands/acp-lines.ts';
import { findTask } from './task-refs.ts';

type Options = ApiOptions & { json?: boolean };
type Message = Awaited<ReturnType<typeof Api.prototype.call<'getMessage'>>>;

interface SayOptions extends Options {
  to?: string;
  replyTo?: number;
}

interface ReadOptions extends Options {
  follow?: boolean;
  search?: string;
  thread?: number;
}

export function addTaskThread(tasks: Command, context: Context): void {
  const { io } = context;

  const send = remote(
    tasks,
    'say <task> [text...]',
    "send a message to a task's thread; pass - to read the text from stdin",
  )
    .option('--to <actor>', 'leader, a member or a person (user:<name>) (default: every member)')
    .option('--reply-to <message>', 'the message that it answers', integer);
  withJson(send, 'payload', 'a JSON object instead of text').action(
    async (ref: string, text_parts: string[], options: SayOptions) => {
      const content = await parseMessageArguments(io, text_parts, options);
      const api = await connect(context, options);
      const { id: task_id, team_id } = await findTask(api, ref);
      const body = {
        ...parseRoute(options.to),
        ...content,
        ...(options.replyTo !== undefined && { reply_to: options.replyTo }),
      };
      const args = { params: { team_id, task_id }, body, idempotency_key: crypto.randomUUID() };
      const sent = await api.call('sendMessage', args);
      if (options.json) return printJson(io, sent);
      if (!sent.delivered) printStatus(io, "the message waits for the task's next run");
      await print(io, `${sent.id}\n`);
    },
  );

  remote(tasks, 'messages <task>', "show a task's messages, oldest first")
    .option('-f, --follow', 'keep showing new messages')
    .option('-q, --search <words>', 'only messages that contain all of these words')
    .option('--thread <message>', 'only replies to this message', integer)
    .action(async (ref: string, options: ReadOptions) => {
      const { follow, search, thread } = options;
      if (follow && (search !== undefined || thread !== undefined)) {
        throw usage('--follow shows the whole thread and takes no --search or --thread');
      }
      const api = await connect(context, options);
      const { id: task_id, team_id } = await findTask(api, ref);
      const params = { team_id, task_id };
      if (follow) return followThread(api, params, options);
      const rows = await api.all('listMessages', { params, query: { q: search, thread } });
      if (options.json) return printJson(io, rows);
      for (const message of rows) await print(io, toLine(message));
    });

  async function followThread(
    api: Api,
    params: { team_id: string; task_id: string },
    { json }: ReadOptions,
  ): Promise<void> {
    const frames = api.client.follow(
      'followMessages',
      { params, signal: io.signal },
      { onState: onConnectionChange((lost) => reportConnection(io, api, lost)) },
    );
    for await (const { data } of frames) {
      if (data.type !== 'message') continue;
      const message = data.record as Message;
      await print(io, json ? jsonText(message) : toLine(message));
    }
    throw new Failure(exitCodes.interrupted, '');
  }

  /** A heading line, and the indented text of the message. */
  function toLine({ id, from_actor_id, route, to_actor_id, reply_to, created_at, text, payload }: Message) {
    const to = route === 'to_member' ? to_actor_id : route === 'to_leader' ? 'leader' : 'all';
    const answer = reply_to === null ? '' : `  re ${reply_to}`;
    const head = printable(`${id}  ${created_at}  ${from_actor_id} -> ${to}${answer}`);
    const content = printableLines(text ?? JSON.stringify(payload)).replaceAll('\n', '\n  ');
    return `${paint(head, 'dim', supportsColor(io.stdout, io.env))}\n  ${content}\n`;
  }
}

function parseRoute(to: string | undefined) {
  if (to === undefined) return { route: 'broadcast' as const };
  return to === 'leader' ? { route: 'to_leader' as const } : { route: 'to_member' as const, to_actor_id: to };
}
