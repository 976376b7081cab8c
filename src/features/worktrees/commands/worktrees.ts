/** `svc worktrees …`: lists worktrees, says why they are kept, and removes those whose agents are gone. */
import type { Command } from 'commander';
import { type Api, type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { failed, usage } from '../../../cli/failure.ts';
import { remote } from '../../../cli/options.ts';
import { type Column, printJson, printRows, printStatus } from '../../../cli/output.ts';
import { printable } from '../../../cli/terminal.ts';
import { each } from '../../agents/commands/each.ts';
import type { WorktreeDeletion, WorktreeRecord } from '../rules.ts';

interface ListOptions extends ApiOptions {
  kept?: boolean;
  node?: string;
  json?: boolean;
}

interface RemoveOptions extends ListOptions {
  all?: boolean;
  force?: boolean;
  dryRun?: boolean;
}

const columns: Column<WorktreeRecord>[] = [
  { title: 'ID', value: (worktree) => worktree.id },
  { title: 'AGENT', value: (worktree) => worktree.agent_name },
  { title: 'NODE', value: (worktree) => worktree.node_id },
  { title: 'STATE', value: (worktree) => worktree.agent_status ?? worktree.state },
  {
    title: 'CHANGES',
    value: ({ diff }) =>
      diff && `${diff.files} ${diff.files === 1 ? 'file' : 'files'}, +${diff.added} -${diff.removed}`,
    spare: true,
  },
  { title: 'KEPT BECAUSE', value: (worktree) => worktree.reason },
  { title: 'WORKDIR', value: (worktree) => worktree.workdir, spare: 20 },
];

export function addWorktrees(program: Command, context: Context): void {
  const worktrees = program
    .command('worktrees')
    .description('list and remove the worktrees that svc created for agents');
  addLs(worktrees, context);
  addRm(worktrees, context);
}

function addLs(worktrees: Command, context: Context): void {
  const { io } = context;
  remote(worktrees, 'ls', 'list worktrees and why they are kept, newest first')
    .alias('list')
    .option('--kept', 'only worktrees whose agents were deleted')
    .option('--node <id>', 'only worktrees on this node')
    .action(async (options: ListOptions) => {
      const api = await connect(context, options);
      await printRows(io, await listWorktrees(api, options), columns, options);
    });
}

function addRm(worktrees: Command, context: Context): void {
  const { io } = context;
  remote(
    worktrees,
    'rm [worktree...]',
    'remove worktrees whose agents were deleted, by id, path or agent name; those with unsaved work are kept',
  )
    .alias('delete')
    .option('--all', 'remove all kept worktrees that have no unsaved work')
    .option('--node <id>', 'only worktrees on this node')
    .option('--force', 'also remove worktrees with unsaved work, and records whose folder is another agent’s')
    .option('--dry-run', 'only show what would happen')
    .action(async (refs: string[], options: RemoveOptions) => {
      if ((refs.length === 0) === !options.all) throw usage('name worktrees, or use --all');
      if (options.all && options.force) throw usage('--force needs the names of worktrees');
      const api = await connect(context, options);
      const listed = await listWorktrees(api, { ...options, kept: options.all });
      const results: WorktreeDeletion[] = [];
      const remove = async ({ id }: WorktreeRecord) => {
        const query = { force: options.force, dry_run: options.dryRun };
        const result = await api.call('deleteWorktree', { params: { worktree_id: id }, query });
        results.push(result);
        if (!options.json) for (const line of resultLines(result)) printStatus(io, printable(line));
        if (result.outcome === 'kept' && !options.all && !options.dryRun) throw failed(keptHint(result));
      };
      const chosen = options.all ? listed.map(({ id }) => id) : refs;
      try {
        await each(io, chosen, (ref) => remove(findWorktree(listed, ref)));
      } finally {
        if (options.json) await printJson(io, results);
        else if (chosen.length === 0) printStatus(io, 'no worktrees are kept');
      }
    });
}

function listWorktrees(api: Api, { kept, node }: ListOptions): Promise<WorktreeRecord[]> {
  return api.all('listWorktrees', { query: { state: kept ? 'kept' : undefined, node_id: node } });
}

/** Finds a worktree by id, path, or the name of its agent if no other worktree has that name. */
function findWorktree(listed: readonly WorktreeRecord[], ref: string): WorktreeRecord {
  const exact = listed.filter(({ id, workdir }) => id === ref || workdir === ref);
  const found = exact.length > 0 ? exact : listed.filter(({ agent_name }) => agent_name === ref);
  if (found.length > 1) {
    throw failed(
      `${found.length} worktrees match ${ref}: use an id (${found.map(({ id }) => id).join(', ')})`,
    );
  }
  const [worktree] = found;
  if (!worktree) throw failed(`worktree not found: ${ref}`);
  if (worktree.state === 'in_use') {
    throw failed(
      `${ref} belongs to an agent that still exists\nto delete both: svc agents delete ${worktree.id}`,
    );
  }
  return worktree;
}

function resultLines({ workdir, outcome, reason, record_only, branch_kept }: WorktreeDeletion): string[] {
  if (outcome === 'kept') return [`kept ${workdir}: ${reason}`];
  const done = outcome === 'removable' ? 'would remove' : 'removed';
  if (record_only) return [`${done} only the record of ${workdir}: ${reason}`];
  const line = `${done} ${workdir}`;
  return branch_kept ? [line, `kept branch ${branch_kept.branch}: ${branch_kept.reason}`] : [line];
}

function keptHint({ id, record_only }: WorktreeDeletion): string {
  const what = record_only ? 'only its record, and leave the folder' : 'it with everything in it';
  return `to remove ${what}: svc worktrees rm --force ${id}`;
}
