/** `svc teams …`: team definitions, as JSON files. */
import type { Command } from 'commander';
import { type AgentRecord, type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { asObject, jsonFile } from '../../../cli/json-options.ts';
import { integer, remote } from '../../../cli/options.ts';
import { type Column, printRecord, printRows, printStatus, report } from '../../../cli/output.ts';
import { printable } from '../../../cli/terminal.ts';
import type { CallArgs } from '../../../client/client.ts';
import { limits } from '../limits.ts';
import { findTeam, type TeamRecord } from './team-refs.ts';

type Options = ApiOptions & { json?: boolean };
type FileOptions = Options & { file: string };

export function addTeams(program: Command, context: Context): void {
  const { io } = context;
  const teams = program.command('teams').description('define teams of agents and people');
  const file = 'a JSON file: {name, spec, key?, description?, human_members?} (-: stdin)';

  remote(teams, 'ls', 'list teams, newest first')
    .alias('list')
    .action(async (options: Options) => {
      const api = await connect(context, options);
      await printRows(
        io,
        await api.all('listTeams', {}),
        [
          { title: 'ID', value: (team) => team.id },
          { title: 'NAME', value: (team) => team.name },
          { title: 'KEY', value: (team) => team.key },
          { title: 'VERSION', value: (team) => team.version },
          { title: 'MEMBERS', value: (team) => team.spec.members.length },
          { title: 'STEPS', value: (team) => team.spec.steps.length },
          { title: 'UPDATED', value: (team) => team.updated_at },
        ],
        options,
      );
    });

  remote(
    teams,
    'show <team>',
    'show a team; --json prints a file for update, which keeps the values of variables',
  )
    .alias('get')
    .action(async (ref: string, options: Options) => {
      await printRecord(io, await findTeam(await connect(context, options), ref), options);
    });

  remote(teams, 'create', 'create a team')
    .requiredOption('-f, --file <file>', file)
    .action(async (options: FileOptions) => {
      // The file may be invalid in any way; the server reports the errors.
      const body = asObject(await jsonFile(io, options.file), options.file) as CallArgs<'createTeam'>['body'];
      const api = await connect(context, options);
      await reportTeam(await api.call('createTeam', { body, idempotency_key: crypto.randomUUID() }), options);
    });

  remote(teams, 'update <team>', 'update a team from a file; runs keep the definition that they started with')
    .requiredOption('-f, --file <file>', file)
    .option(
      '--version <n>',
      'only if the team still has this version (default: the version in the file)',
      integer,
    )
    .action(async (ref: string, options: FileOptions & { version?: number }) => {
      const input = asObject(await jsonFile(io, options.file), options.file);
      const api = await connect(context, options);
      const { id, version } = await findTeam(api, ref);
      const body = {
        ...withoutRecordFields(input),
        version: options.version ?? input.version ?? version,
      } as NonNullable<CallArgs<'updateTeam'>['body']>;
      await reportTeam(await api.call('updateTeam', { params: { team_id: id }, body }), options);
    });

  remote(teams, 'delete <team>', 'delete a team with its tasks, task threads and runs')
    .alias('rm')
    .action(async (ref: string, options: Options) => {
      const api = await connect(context, options);
      const { id } = await findTeam(api, ref);
      const agents = await api.all('listAgents', { query: { team_id: id } });
      await api.call('deleteTeam', { params: { team_id: id } });
      if (options.json) return printRecord(io, { id, agents_kept: agents.map((agent) => agent.id) }, options);
      for (const line of [`deleted ${id}`, ...keptLines(agents)]) printStatus(io, printable(line));
    });

  function reportTeam(team: TeamRecord, options: Options): Promise<void> {
    const line = `${team.id}  ${team.name}  version ${team.version}`;
    return report(io, team, { line, columns }, options);
  }
}

/** What is said of the agents that outlive their team, and how to delete them earlier than svc does. */
function keptLines(agents: readonly AgentRecord[]): string[] {
  if (agents.length === 0) return [];
  const named = agents.slice(0, limits.cli_named_agents_max).map(({ id }) => id);
  const which = named.length < agents.length ? `${named.length} of them` : 'them';
  return [
    `kept ${agents.length} ${agents.length === 1 ? 'agent' : 'agents'} of its runs, with logs and worktrees, for retention.run_agents_days`,
    `to delete ${agents.length === 1 ? 'it' : which} now: svc agents delete ${named.join(' ')}`,
  ];
}

const columns: Column<TeamRecord>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'VERSION', value: ({ version }) => version },
];

/** Accepts the output of `svc teams get --json` by removing its read-only fields. */
function withoutRecordFields(input: Record<string, unknown>): Record<string, unknown> {
  const fixed = ['id', 'created_by', 'created_at', 'updated_at'];
  return Object.fromEntries(Object.entries(input).filter(([name]) => !fixed.includes(name)));
}
