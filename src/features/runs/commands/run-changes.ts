/** `svc runs changes`: the size of what each member of a run changed, and the command that shows it. */
import type { Command } from 'commander';
import { type Api, type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { remote } from '../../../cli/options.ts';
import { type Column, printRows } from '../../../cli/output.ts';
import { findRun, type RunRecord } from '../../teams/commands/team-refs.ts';
import { listMemberChanges, type MemberChanges } from '../rules/changes.ts';

export const changeColumns: Column<MemberChanges>[] = [
  { title: 'MEMBER', value: (item) => item.member_id },
  { title: 'FILES', value: (item) => item.files },
  { title: '+', value: (item) => item.added },
  { title: '-', value: (item) => item.removed },
  { title: 'DIFF', value: (item) => `svc agents diff ${item.agent_id}` },
];

export function addRunChanges(runs: Command, context: Context): void {
  remote(
    runs,
    'changes <run>',
    'list what each member changed in its worktree, with the command that shows the diff',
  ).action(async (ref: string, options: ApiOptions & { json?: boolean }) => {
    const api = await connect(context, options);
    await printRows(context.io, await memberChanges(api, await findRun(api, ref)), changeColumns, options);
  });
}

export async function memberChanges(api: Api, run: RunRecord): Promise<MemberChanges[]> {
  return listMemberChanges(run, await api.all('listAgents', { query: { run_id: run.id } }));
}
