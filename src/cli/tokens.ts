/** `svc tokens …`: the caller's named API tokens. A new one is printed once, alone on stdout. */
import type { Command } from 'commander';
import { type ApiOptions, connect } from './api.ts';
import type { Context } from './context.ts';
import { failed } from './failure.ts';
import { duration, remote } from './options.ts';
import { print, printJson, printRecord, printRows, say } from './output.ts';
import { visible } from './terminal.ts';

type Options = ApiOptions & { json?: boolean };

export function addTokens(program: Command, context: Context): void {
  const { io } = context;
  const tokens = program.command('tokens').description('manage your API tokens');

  remote(tokens, 'ls', 'list your API tokens')
    .alias('list')
    .action(async (options: Options) => {
      const api = await connect(context, options);
      await printRows(
        io,
        await api.all('listTokens', {}),
        [
          { title: 'ID', value: (token) => token.id },
          { title: 'NAME', value: (token) => token.name },
          { title: 'CREATED', value: (token) => token.created_at },
          { title: 'LAST USED', value: (token) => token.last_used_at },
          { title: 'EXPIRES', value: (token) => token.expires_at },
        ],
        options,
      );
    });

  remote(tokens, 'create <name>', 'make an API token; it is shown only now')
    .option('--expires <duration>', 'it ends after, for example 720h; default: never', duration)
    .action(async (name: string, options: Options & { expires?: number }) => {
      const api = await connect(context, options);
      const expires_at =
        options.expires === undefined ? null : new Date(Date.now() + options.expires).toISOString();
      const made = await api.call('createToken', { body: { name, expires_at } });
      if (options.json) return printJson(io, made);
      say(io, visible(`${made.id}  ${made.name}  (shown only now)`));
      await print(io, `${made.token}\n`);
    });

  remote(tokens, 'delete <token>', 'end an API token, by id or name')
    .alias('rm')
    .action(async (ref: string, options: Options) => {
      const api = await connect(context, options);
      const found = (await api.all('listTokens', {})).filter(({ id, name }) => id === ref || name === ref);
      if (found.length > 1) throw failed(`${found.length} tokens are called ${ref}: use an id`);
      if (!found[0]) throw failed(`token not found: ${ref}`);
      await api.call('deleteToken', { params: { token_id: found[0].id } });
      if (options.json) await printRecord(io, { id: found[0].id }, options);
      else say(io, `deleted ${found[0].id}`);
    });
}
