/** The menu that takes an agent's changes elsewhere: its branch, the command that merges it, or one patch; or discards them. */
import { Copy, Download, GitBranch, GitMerge, Trash2 } from 'lucide-react';
import { use } from 'react';
import { errorMessage, open } from '../../../api/client.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { useSession } from '../../../api/session.ts';
import { Button } from '../../../ui/button.tsx';
import { copyText } from '../../../ui/copy.tsx';
import { Menu } from '../../../ui/menu.tsx';
import { showToast } from '../../../ui/toast.tsx';
import { AskToDelete } from '../deleting.ts';
import { save } from '../output/save.ts';
import { mergeCommand } from './take.ts';

export function TakeMenu({ agent, branch }: { agent: AgentRecord; branch: string | null }) {
  const { worktree_repo: repository } = agent;
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
        branch !== null && {
          label: 'Copy branch',
          icon: <GitBranch aria-hidden />,
          onSelect: () => void copy(branch, 'Branch copied'),
        },
        {
          label: 'Copy patch',
          icon: <Copy aria-hidden />,
          onSelect: () => void withPatch(agent.id, (patch) => copy(patch, 'Patch copied', PATCH_NOTE)),
        },
        {
          label: 'Download patch',
          icon: <Download aria-hidden />,
          onSelect: () =>
            void withPatch(agent.id, (patch) => save(new Blob([patch]), `${agent.name}-changes.patch`)),
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

const PATCH_NOTE = 'It holds all changes, with or without a commit. Apply it with git apply.';

async function copy(text: string, title: string, description?: string): Promise<void> {
  try {
    await copyText(text);
    showToast(title, description);
  } catch {
    showToast('Copy failed', 'The browser did not allow it.');
  }
}

async function withPatch(agent_id: string, use: (patch: string) => unknown): Promise<void> {
  try {
    const answer = await open('getChanges', { params: { agent_id }, headers: { accept: 'text/x-diff' } });
    await use(await answer.text());
  } catch (error) {
    showToast('The patch could not be read', errorMessage(error));
  }
}
