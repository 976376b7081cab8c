/** Where a refused folder or repository would be allowed, and for root, a button that allows it. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { call, errorMessage } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import { useSession } from '../../api/session.ts';
import { Button } from '../../ui/button.tsx';
import type { FormState } from './fields.tsx';

export function AllowedPaths({ form }: { form: FormState }) {
  const { draft, problems, allowed, is_refused, change } = form;
  if (!is_refused) return null;
  const subject = problems.repo ? 'repository' : 'folder';
  return (
    <div className="mt-1 flex flex-col items-start gap-2 rounded-md border border-line bg-surface p-2 text-sm">
      {allowed.length === 0 ? (
        <p>No folder is allowed on this node yet.</p>
      ) : (
        <div>
          <p>The {subject} must be in one of these folders:</p>
          <ul className="list-disc pl-5 font-mono">
            {allowed.map((path) => (
              <li key={path} className="break-all">
                {path}
              </li>
            ))}
          </ul>
        </div>
      )}
      {draft.where === 'folder' && (
        <Button onClick={() => change({ where: 'worktree', repo: draft.workdir, workdir: '' })}>
          Use a worktree instead
        </Button>
      )}
      <Remedy form={form} />
    </div>
  );
}

/** The plane can change only the settings of the main node. */
function Remedy({ form }: { form: FormState }) {
  const role = useSession()?.user.role;
  const client = useQueryClient();
  const { draft, problems, change, check } = form;
  const setting = problems.repo ? 'worktree.repo_roots' : 'safe_paths';
  const path = (problems.repo ? draft.repo : draft.workdir).trim();
  const allow = useMutation({
    mutationFn: () => call('allowFolder', { body: { setting, path } }),
    onSuccess: async () => {
      change({});
      await client.invalidateQueries({ queryKey: keys.nodes });
      await client.invalidateQueries({ queryKey: keys.repositories(draft.node_id) });
      if (draft.where === 'worktree') check(path);
    },
  });
  if (draft.node_id !== 'main') {
    return <p>To allow another folder, add it to {setting} in the configuration of this node.</p>;
  }
  if (role !== 'root') return <p>A root user can allow this {problems.repo ? 'repository' : 'folder'}.</p>;
  return (
    <>
      <Button busy={allow.isPending} onClick={() => allow.mutate()} className="max-w-full">
        <span className="truncate">Allow {path}</span>
      </Button>
      <p className="text-muted">Adds it to {setting}, for the agents of all users.</p>
      {allow.error && (
        <p role="alert" className="text-failed">
          {errorMessage(allow.error)}
        </p>
      )}
    </>
  );
}
