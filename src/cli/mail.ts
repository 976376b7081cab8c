/** `svc mail …`: the mailbox of people, and of members that are driven from outside. */
import type { Command } from 'commander';
import { Problem } from '../domain/problem.ts';
import { type Api, type ApiOptions, connect } from './api.ts';
import type { Context } from './context.ts';
import { failed } from './failure.ts';
import { givenWords, withJson } from './given-json.ts';
import { remote, wholeNumber } from './options.ts';
import { type Column, print, printJson, printRecord, printRows, say } from './output.ts';
import { findRun } from './team-refs.ts';
import { visible } from './terminal.ts';

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
  const { io } = context;
  const mail = program
    .command('mail')
    .description('mail between the actors of a run: <member>@<team id>, user:<name>; in a run also <member>');

  remote(mail, 'ls [actor]', 'list what an actor has not acknowledged, oldest first; default: you')
    .alias('list')
    .option('--run <run>', 'only mail of this run')
    .option('--all', 'what is acknowledged or could not be delivered too')
    .option('-n, --limit <n>', 'how many at most', wholeNumber)
    .option('--wait <seconds>', 'wait so long for some that is new', wholeNumber)
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
      const status: Column<Mail> = { title: 'STATUS', value: (one) => one.status };
      await printRows(
        io,
        rows,
        [
          { title: 'ID', value: (one) => one.id },
          { title: 'CREATED', value: (one) => one.created_at },
          { title: 'FROM', value: (one) => one.from_actor_id },
          ...(all ? [status] : []),
          { title: 'PAYLOAD', value: (one) => JSON.stringify(one.payload) },
        ],
        options,
      );
    });

  remote(mail, 'show <message>', 'show a message, and what became of it')
    .alias('get')
    .action(async (message_id: string, options: Options) => {
      const api = await connect(context, options);
      await printRecord(io, await api.call('getMail', { params: { message_id } }), options);
    });

  const send = remote(mail, 'send <actor> [text...]', 'send mail to an actor of a run; - reads it from stdin')
    .requiredOption('--run <run>', 'the run')
    .option('--from <actor>', 'a member without an agent, in whose name it goes; default: you');
  withJson(send, 'payload', 'a JSON object instead of a text').action(
    async (to_actor_id: string, words: string[], options: SendOptions) => {
      const said = await givenWords(io, words, options);
      const payload = 'text' in said ? said : said.payload;
      const api = await connect(context, options);
      const { id: run_id } = await findRun(api, options.run);
      const from_actor_id = options.from ?? (await ownActor(api));
      const sent = await api.call('sendMail', {
        body: { run_id, from_actor_id, to_actor_id, payload },
        idempotency_key: crypto.randomUUID(),
      });
      if (options.json) return printJson(io, sent);
      if (sent.reason !== undefined) say(io, visible(`it is a ${sent.status}: ${sent.reason}`));
      await print(io, `${sent.id}\n`);
    },
  );

  remote(mail, 'ack <message...>', 'acknowledge messages: they leave the inbox').action(
    async (ids: string[], options: Options) => {
      const api = await connect(context, options);
      const refusals: string[] = [];
      for (const message_id of ids) {
        try {
          const acked = await api.patiently('ackMail', { params: { message_id } });
          if (options.json) await print(io, `${JSON.stringify(acked)}\n`);
          else say(io, `acknowledged ${acked.id}`);
        } catch (error) {
          // Who is not signed in acknowledges none of them.
          if (!(error instanceof Problem) || error.kind === 'unauthenticated') throw error;
          refusals.push(`${message_id}: ${error.message}`);
        }
      }
      if (refusals.length > 0) throw failed(refusals.join('\n'));
    },
  );
}

/** Whoever is signed in. */
export async function ownActor(api: Api): Promise<string> {
  return `user:${(await api.call('getMe', {})).username}`;
}
