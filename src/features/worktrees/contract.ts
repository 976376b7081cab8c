/** API of worktrees: those of agents, and those that were kept when their agents were deleted. */
import { z } from 'zod';
import { bounded, id, list, nodeId, pageQuery, queryFlag, time } from '../../api/fields.ts';
import { route } from '../../api/route.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { diffSize } from '../agents/contract.ts';
import { agentStatuses } from '../agents/rules.ts';
import { worktreeOutcomes, worktreeStates } from './rules.ts';

export const worktreeRecord = z
  .object({
    id: id.meta({ description: 'The id of its agent, also after the agent was deleted.' }),
    state: z.enum(worktreeStates).meta({
      description:
        '`in_use`: it belongs to an agent. `kept`: its agent was deleted, and the worktree was kept because of unsaved work.',
    }),
    node_id: z.string(),
    workdir: z.string().meta({ description: 'Absolute path on the node.' }),
    repo: z.string().nullable(),
    branch: z.string().nullable(),
    agent_name: z.string(),
    agent_status: z.enum(agentStatuses).nullable(),
    owner_id: id,
    team_id: id.nullable(),
    run_id: id.nullable(),
    member_id: z.string().nullable(),
    reason: z.string().nullable().meta({ description: 'Why it was kept, as of the last deletion.' }),
    kept_at: time.nullable(),
    diff: diffSize.nullable().meta({
      description:
        'Changed files and lines in it: those of the record of its agent, or of a kept worktree when its agent was deleted. Null if they are not known.',
    }),
  })
  .meta({ id: 'Worktree' });

export const worktreeDeletion = z
  .object({
    id,
    node_id: z.string(),
    workdir: z.string(),
    outcome: z.enum(worktreeOutcomes).meta({
      description: '`removable`: a dry run found that it would be removed. `kept`: see `reason`.',
    }),
    reason: z.string().nullable().meta({
      description: 'Why it, or with `record_only` its folder, was or would be kept; null otherwise.',
    }),
    record_only: z.boolean().meta({
      description:
        'The folder belongs to another agent now. It stays, and only the record of the worktree can be removed, with `force`.',
    }),
    branch_kept: z
      .object({ branch: z.string(), reason: z.string() })
      .nullable()
      .meta({ description: 'The branch, if it was kept although the worktree was removed.' }),
  })
  .meta({ id: 'WorktreeDeletion' });

export const worktreeRoutes = {
  listWorktrees: route({
    method: 'GET',
    path: '/api/worktrees',
    action: 'agents.list',
    tag: 'Worktrees',
    summary: 'List worktrees and why they are kept, newest first',
    description:
      'Worktrees and empty folders that svc created for agents. A worktree that agents of a run share is listed once.',
    query: z.object({
      ...pageQuery,
      state: z.enum(worktreeStates).optional(),
      node_id: nodeId.optional(),
      repo: bounded(sharedLimits.path_chars_max).optional(),
    }),
    answers: { 200: list(worktreeRecord) },
    errors: ['invalidCursor'],
  }),
  deleteWorktree: route({
    method: 'DELETE',
    path: '/api/worktrees/{worktree_id}',
    action: 'agent.delete',
    tag: 'Worktrees',
    summary: 'Delete a worktree whose agent was deleted',
    description:
      'A worktree with unsaved work is kept unless `force` is set; `outcome` tells what happened. If the folder belongs to another agent now, `force` removes only the record of the worktree. To delete a worktree in use, delete its agent.',
    query: z.object({
      force: queryFlag.optional().meta({ description: 'Delete it even if it has unsaved work.' }),
      dry_run: queryFlag.optional().meta({ description: 'Only report what would happen.' }),
    }),
    answers: { 200: worktreeDeletion },
    errors: ['worktreeNotFound', 'worktreeInUse', 'nodeNotFound', 'nodeUnreachable', 'nodeTooOld'],
  }),
};
