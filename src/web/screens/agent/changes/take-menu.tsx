/** The menu that takes an agent's changes elsewhere: by merging or pushing its branch, or as one patch; or discards them. */
import { Copy, Download, GitBranch, GitMerge, GitPullRequest, Trash2, Upload } from 'lucide-react';
import { use } from 'react';
import { type Answered, errorMessage, open } from '../../../api/client.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { useSession } from '../../../api/session.ts';
import { Button } from '../../../ui/button.tsx';
import { copyText } from '../../../ui/copy.tsx';
import { Menu, type MenuItem, type MenuLink } from '../../../ui/menu.tsx';
import { save } from '../../../ui/save.ts';
import { showToast } from '../../../ui/toast.tsx';
import { AskToDelete } from '../deleting.ts';
import { pullRequestPage } from './pull-request.ts';
import { mergeCommand, patchText, pushCommand } from './take.ts';

type Changes = Pick<Answered<'getChanges'>, 'branch' | 'remote'>;

export function TakeMenu({ agent, changes }: { agent: AgentRecord; changes: Changes }) {
  const { worktree_repo: repository } = agent;
  const { branch } = changes;
  const askToDelete = use(AskToDelete);
  const user = useSession()?.user;
  const may_discard = user?.role === 'root' || user?.id === agent.owner_id;
  return (
    <Menu
      trigger={<Button icon={<GitMerge aria-hidden />}>Use changes</Button>}
      items={[
        branch !== null &&
          repository !== null && {
            label: 'Copy merge command',
            icon: <GitMerge aria-hidden />,
            onSelect: () =>
              void copy(
                mergeCommand(repository, branch),
                'Merge command copied',
                'It merges what the agent committed. Changes without a commit are only in the patch.',
              ),
          },
        ...(repository === null ? [] : pullRequestItems(repository, changes)),
        branch !== null && {
          label: 'Copy branch',
          icon: <GitBranch aria-hidden />,
          onSelect: () => void copy(branch, 'Branch copied'),
        },
        {
          label: 'Copy patch',
          icon: <Copy aria-hidden />,
          onSelect: () => void withPatch(agent.id, copyPatch),
        },
        {
          label: 'Download patch',
          icon: <Download aria-hidden />,
          onSelect: () => void withPatch(agent.id, (patch) => save(patch, `${agent.name}-changes.patch`)),
        },
        may_discard &&
          agent.worktree_mode === 'create_worktree' && {
            label: 'Discard worktree',
            icon: <Trash2 aria-hidden />,
            danger: true,
            onSelect: () => askToDelete('discard'),
            hint: 'Shows what would be lost before it deletes the agent and its worktree',
          },
      ]}
    />
  );
}

/** Pushing comes first, unless the remote already has everything. */
function pullRequestItems(repository: string, { branch, remote }: Changes): (MenuItem | MenuLink)[] {
  if (branch === null || remote === null) return [];
  const { name, url, pushed } = remote;
  const command = pushed ? null : pushCommand(repository, name, branch);
  const page = url === null ? null : pullRequestPage(url, branch);
  const items: (MenuItem | MenuLink)[] = [];
  if (command !== null) {
    const note = `It pushes the agent's commits to ${url ?? name}. Changes without a commit are only in the patch.`;
    items.push({
      label: 'Copy push command',
      icon: <Upload aria-hidden />,
      hint: `Pushes to ${url ?? name}`,
      onSelect: () => void copy(command, 'Push command copied', note),
    });
  }
  if (page !== null) {
    items.push({
      label: `Open ${page.noun} on ${page.host}`,
      icon: <GitPullRequest aria-hidden />,
      href: page.href,
      hint: pushed
        ? undefined
        : 'Push the branch first. As far as its repository knows, the remote does not have its latest commit.',
    });
  }
  return items;
}

const PATCH_NOTE = 'It holds all changes, with or without a commit. Apply it with git apply.';

async function copy(text: string, title: string, description?: string): Promise<void> {
  try {
    await copyText(text);
    showToast(title, description);
  } catch {
    showToast('Copy failed', 'The browser did not allow it.');
  }
}

async function copyPatch(patch: Blob): Promise<void> {
  const text = await patchText(patch);
  if (text !== null) return copy(text, 'Patch copied', PATCH_NOTE);
  showToast(
    'The patch cannot be copied',
    'It has bytes that are not UTF-8, which the clipboard cannot hold. Choose Download patch instead.',
  );
}

async function withPatch(agent_id: string, use: (patch: Blob) => unknown): Promise<void> {
  try {
    const answer = await open('getChanges', { params: { agent_id }, headers: { accept: 'text/x-diff' } });
    await use(await answer.blob());
  } catch (error) {
    showToast('The patch could not be read', errorMessage(error));
  }
}
