/** The choice of the folder: a new worktree, an existing folder, or an empty one. */
import { useId } from 'react';
import type { Answered } from '../../api/client.ts';
import { Field, inputClass } from '../../ui/field.tsx';
import type { Draft, Where } from './form.ts';

export type NodeChoice =
  Answered<'listNodes'> extends infer A ? (A extends { items: (infer N)[] } ? N : never) : never;

const choices: { where: Where; label: string }[] = [
  { where: 'worktree', label: 'New worktree' },
  { where: 'folder', label: 'Existing folder' },
  { where: 'empty', label: 'Empty folder' },
];

export function WhereChoice({
  draft,
  change,
  folders,
  error,
}: {
  draft: Draft;
  change: (fields: Partial<Draft>) => void;
  folders: NodeChoice['folders'];
  error: string | undefined;
}) {
  const known = useId();
  return (
    <div className="flex flex-col gap-3">
      <fieldset>
        <legend className="mb-1 font-medium text-sm">Where</legend>
        <div className="flex flex-wrap gap-x-4">
          {choices.map(({ where, label }) => (
            <label key={where} className="tap inline-flex cursor-pointer items-center gap-1.5">
              <input
                type="radio"
                name="where"
                className="size-4 accent-accent"
                checked={draft.where === where}
                onChange={() => change({ where, workdir: '' })}
              />
              {label}
            </label>
          ))}
        </div>
      </fieldset>
      {draft.where === 'worktree' && (
        <Field label="Repository" error={error} hint="The absolute path of a git repository on the node.">
          {(control) => (
            <>
              <input
                {...control}
                list={known}
                value={draft.repo}
                spellCheck={false}
                autoComplete="off"
                placeholder="/home/ana/code/shop"
                onChange={(event) => change({ repo: event.target.value })}
                className={inputClass}
              />
              <datalist id={known}>
                {[...(folders?.repo_roots ?? []), ...(folders?.safe_paths ?? [])].map((path) => (
                  <option key={path} value={path} />
                ))}
              </datalist>
            </>
          )}
        </Field>
      )}
    </div>
  );
}
