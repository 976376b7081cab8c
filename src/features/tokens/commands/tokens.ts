/** `svc tokens …`: manages the caller's API tokens. A new token is printed once, alone on stdout. */
import { type Command, InvalidArgumentError } from 'commander';
import { type Api, type ApiOptions, connect, findAgent } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { failed } from '../../../cli/failure.ts';
import { collect, duration, remote } from '../../../cli/options.ts';
import { print, printJson, printRecord, printRows, printStatus } from '../../../cli/output.ts';
import { printable } from '../../../cli/terminal.ts';
import { type Scope, scopes } from '../../../core/grant.ts';
import { findTeam } from '../../teams/commands/team-refs.ts';

type Options = ApiOptions & { json?: boolean };

interface CreateOptions extends Options {
  expires?: number;
  scope?: Scope[];
  agent?: string[];
  team?: string[];
}

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
          { title: 'SCOPES', value: (token) => token.scopes.join(',') },
          { title: 'LIMITED TO', value: (token) => formatLimits(token).join(',') },
        ],
        options,
      );
    });

  remote(tokens, 'create <name>', 'create an API token; it is shown only once')
    .option('--expires <duration>', 'time until it expires, for example 720h; default: never', duration)
    .option(
      '--scope <scope>',
      `scope of the token: ${scopes.join(', ')}; repeat for more; default: all that you have except admin`,
      collectScope,
    )
    .option('--agent <agent>', 'limit it to an agent, by id or name; repeat for more', collect)
    .option('--team <team>', 'limit it to a team and everything in it; repeat for more', collect)
    .action(async (name: string, options: CreateOptions) => {
      const api = await connect(context, options);
      const expires_at =
        options.expires === undefined ? null : new Date(Date.now() + options.expires).toISOString();
      const created = await api.call('createToken', {
        body: { name, expires_at, ...(await resolveGrant(api, options)) },
      });
      if (options.json) return printJson(io, created);
      printStatus(
        io,
        printable(`${created.id}  ${created.name}  ${created.scopes.join(',')}  (shown only once)`),
      );
      await print(io, `${created.token}\n`);
    });

  remote(tokens, 'delete <token>', 'revoke an API token, by id or name')
    .alias('rm')
    .action(async (ref: string, options: Options) => {
      const api = await connect(context, options);
      const found = (await api.all('listTokens', {})).filter(({ id, name }) => id === ref || name === ref);
      if (found.length > 1) throw failed(`${found.length} tokens are named ${ref}: use an id`);
      if (!found[0]) throw failed(`token not found: ${ref}`);
      await api.call('deleteToken', { params: { token_id: found[0].id } });
      if (options.json) await printRecord(io, { id: found[0].id }, options);
      else printStatus(io, `deleted ${found[0].id}`);
    });
}

async function resolveGrant(api: Api, { scope, agent = [], team = [] }: CreateOptions) {
  const agent_ids = await resolveIds(agent, (ref) => findAgent(api, ref));
  const team_ids = await resolveIds(team, (ref) => findTeam(api, ref));
  return { ...(scope && { scopes: scope }), agent_ids, team_ids };
}

/** Null for no names: the plane rejects an empty list. */
async function resolveIds(
  refs: readonly string[],
  find: (ref: string) => Promise<{ id: string }>,
): Promise<string[] | null> {
  if (refs.length === 0) return null;
  const ids: string[] = [];
  for (const ref of refs) ids.push((await find(ref)).id);
  return ids;
}

function formatLimits({
  agent_ids,
  team_ids,
}: {
  agent_ids: string[] | null;
  team_ids: string[] | null;
}): string[] {
  return [...(agent_ids ?? []), ...(team_ids ?? [])];
}

function collectScope(text: string, before: Scope[] = []): Scope[] {
  const scope = scopes.find((scope) => scope === text);
  if (scope === undefined) throw new InvalidArgumentError(`must be one of: ${scopes.join(', ')}`);
  return [...before, scope];
}
