/** `svc mail …`: the mailbox of people, and of team members without an agent. `svc runs mail`: all mail of a run. */
import type { Command } from 'commander';
import { type Api, type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { failed } from '../../../cli/failure.ts';
import { parseMessageArguments, withJson } from '../../../cli/json-options.ts';
import { integer, remote } from '../../../cli/options.ts';
import {
  type Column,
  jsonText,
  print,
  printJson,
  printRecord,
  printRows,
  printStatus,
} from '../../../cli/output.ts';
import { printable } from '../../../cli/terminal.ts';
import { Problem } from '../../../core/problem.ts';
import { findRun } from '../../teams/commands/team-refs.ts';

type Options = ApiOptions & { json?: boolean };
type Mail = Awaited<ReturnType<typeof Api.prototype.call<'getMail'>>>;

interface ListOptions extends Options {
  run?: string;
  all?: boolean;
  limit?: number;
  wait?: number;
}

interface SendOptions extends Options {
  run: string;
  from?: string;
}

export function addMail(program: Command, context: Context): void {
  const mail = program
    .command('mail')
    .description(
      'read and send mail between the actors of a run: <member>@<team id>, user:<name>; with --run also <member>',
    );
  addLs(mail, context);
  addShow(mail, context);
  addSend(mail, context);
  addAck(mail, context);
}

function addLs(mail: Command, context: Context): void {
  const { io } = context;
  remote(mail, 'ls [actor]', "list an actor's unacknowledged mail, oldest first (default: yours)")
    .alias('list')
    .option('--run <run>', 'only mail of this run')
    .option('--all', 'include mail that is acknowledged or could not be delivered')
    .option('-n, --limit <n>', 'maximum number of messages', integer)
    .option('--wait <seconds>', 'wait up to this long for new mail', integer)
    .action(async (actor: string | undefined, options: ListOptions) => {
      const api = await connect(context, options);
      const { run, all, limit, wait } = options;
      const rows = await api.call('listMail', {
        params: { actor_id: actor ?? (await ownActor(api)) },
        query: {
          ...(run !== undefined && { run_id: (await findRun(api, run)).id }),
          ...(all && { status: 'all' as const }),
          ...(limit !== undefined && { limit }),
          ...(wait !== undefined && { wait }),
        },
      });
      const status: Column<Mail> = { title: 'STATUS', value: (item) => item.status };
      await printRows(
        io,
        rows,
        [
          { title: 'ID', value: (item) => item.id },
          { title: 'CREATED', value: (item) => item.created_at },
          { title: 'FROM', value: (item) => item.from_actor_id },
          ...(all ? [status] : []),
          { title: 'PAYLOAD', value: (item) => JSON.stringify(item.payload) },
        ],
        options,
      );
    });
}

function addShow(mail: Command, context: Context): void {
  const { io } = context;
  remote(mail, 'show <message>', 'show a message and its delivery state')
    .alias('get')
    .action(async (message_id: string, options: Options) => {
      const api = await connect(context, options);
      await printRecord(io, await api.call('getMail', { params: { message_id } }), options);
    });
}

function addSend(mail: Command, context: Context): void {
  const { io } = context;
  const send = remote(
    mail,
    'send <actor> [text...]',
    'send mail to an actor of a run; pass - to read the text from stdin',
  )
    .requiredOption('--run <run>', 'the run')
    .option('--from <actor>', 'send as this member, which must have no agent (default: you)');
  withJson(send, 'payload', 'a JSON object instead of text').action(
    async (to_actor_id: string, args: string[], options: SendOptions) => {
      const content = await parseMessageArguments(io, args, options);
      const payload = 'text' in content ? content : content.payload;
      const api = await connect(context, options);
      const { id: run_id } = await findRun(api, options.run);
      const from_actor_id = options.from ?? (await ownActor(api));
      const sent = await api.call('sendMail', {
        body: { run_id, from_actor_id, to_actor_id, payload },
        idempotency_key: crypto.randomUUID(),
      });
      if (options.json) return printJson(io, sent);
      if (sent.reason !== undefined) printStatus(io, printable(`${sent.status}: ${sent.reason}`));
      await print(io, `${sent.id}\n`);
    },
  );
}

function addAck(mail: Command, context: Context): void {
  const { io } = context;
  remote(mail, 'ack <message...>', 'acknowledge messages, which removes them from the inbox').action(
    async (ids: string[], options: Options) => {
      const api = await connect(context, options);
      const refusals: string[] = [];
      for (const message_id of ids) {
        try {
          const acked = await api.callWithRetry('ackMail', { params: { message_id } });
          if (options.json) await print(io, jsonText(acked));
          else printStatus(io, `acknowledged ${acked.id}`);
        } catch (error) {
          // Checks the sign-in before the first message, so that either every message is tried or none.
          if (!(error instanceof Problem) || error.kind === 'unauthenticated') throw error;
          refusals.push(`${message_id}: ${error.message}`);
        }
      }
      if (refusals.length > 0) throw failed(refusals.join('\n'));
    },
  );
}

/** `svc runs mail`. */
export function addRunMail(runs: Command, context: Context): void {
  const { io } = context;
  remote(runs, 'mail <run>', 'list all mail of a run, oldest first, without payloads').action(
    async (ref: string, options: Options) => {
      const api = await connect(context, options);
      const { id: run_id } = await findRun(api, ref);
      await printRows(
        io,
        await api.all('listRunMail', { params: { run_id } }),
        [
          { title: 'ID', value: (mail) => mail.id },
          { title: 'FROM', value: (mail) => mail.from_actor_id },
          { title: 'TO', value: (mail) => mail.to_actor_id },
          { title: 'STATUS', value: (mail) => mail.status },
          { title: 'CREATED', value: (mail) => mail.created_at },
          { title: 'REASON', value: (mail) => mail.reason },
        ],
        options,
      );
    },
  );
}

/** The signed-in user. */
export async function ownActor(api: Api): Promise<string> {
  return `user:${(await api.call('getMe', {})).username}`;
}
