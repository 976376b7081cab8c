/** `svc users …` (root only): manages users. */
import type { Command } from 'commander';
import { type Api, type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { failed, usage } from '../../../cli/failure.ts';
import { remote } from '../../../cli/options.ts';
import { printRecord, printRows, printStatus } from '../../../cli/output.ts';
import { password } from '../../../cli/prompt.ts';

interface Options extends ApiOptions {
  json?: boolean;
  role?: string;
  passwordFile?: string;
}

export function addUsers(program: Command, context: Context): void {
  const { io } = context;
  const users = program.command('users').description('manage users (root)');

  remote(users, 'ls', 'list users')
    .alias('list')
    .action(async (options: Options) => {
      const api = await connect(context, options);
      await printRows(
        io,
        await api.all('listUsers', {}),
        [
          { title: 'ID', value: (user) => user.id },
          { title: 'USERNAME', value: (user) => user.username },
          { title: 'ROLE', value: (user) => user.role },
          { title: 'CREATED', value: (user) => user.created_at },
        ],
        options,
      );
    });

  remote(users, 'create <username>', 'create a user')
    .option('--role <role>', 'user or root', 'user')
    .option('--password-file <file>', 'file with the password on its first line (-: stdin)')
    .action(async (username: string, options: Options) => {
      const role = parseRole(options.role);
      const api = await connect(context, options);
      const secret = await password(io, `Password for ${username}`, options.passwordFile, { twice: true });
      const body = { username, password: secret, role };
      const idempotency_key = crypto.randomUUID();
      await printRecord(io, await api.call('createUser', { body, idempotency_key }), options);
    });

  remote(users, 'set-role <username> <role>', 'change the role of a user to user or root').action(
    async (username: string, role: string, options: Options) => {
      const api = await connect(context, options);
      const params = { user_id: await userId(api, username) };
      await printRecord(
        io,
        await api.call('updateUser', { params, body: { role: parseRole(role) } }),
        options,
      );
    },
  );

  remote(users, 'set-password <username>', "set a user's password and revoke their tokens")
    .option('--password-file <file>', 'file with the password on its first line (-: stdin)')
    .action(async (username: string, options: Options) => {
      const api = await connect(context, options);
      const params = { user_id: await userId(api, username) };
      const secret = await password(io, `New password for ${username}`, options.passwordFile, {
        twice: true,
      });
      await printRecord(io, await api.call('updateUser', { params, body: { password: secret } }), options);
    });

  remote(users, 'delete <username>', 'delete a user')
    .alias('rm')
    .action(async (username: string, options: Options) => {
      const api = await connect(context, options);
      const user_id = await userId(api, username);
      await api.call('deleteUser', { params: { user_id } });
      if (options.json) await printRecord(io, { id: user_id }, options);
      else printStatus(io, `deleted ${user_id}`);
    });
}

function parseRole(role: string | undefined): 'root' | 'user' {
  if (role === 'root' || role === 'user') return role;
  throw usage('the role must be user or root');
}

async function userId(api: Api, ref: string): Promise<string> {
  const found = (await api.all('listUsers', {})).find(({ id, username }) => username === ref || id === ref);
  if (!found) throw failed(`user not found: ${ref}`);
  return found.id;
}
