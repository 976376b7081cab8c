/** The choice of the repository or folder, with the repositories that agents can use on the node. */

import { escapeHidden } from '../../../core/visible.ts';
import type { RepositoryRecord } from '../../api/queries.ts';
import { Combobox, type ComboboxOption } from '../../ui/combobox.tsx';
import { Field } from '../../ui/field.tsx';
import { AllowedPaths } from './allowed-paths.tsx';
import type { FormState } from './fields.tsx';

export function RepositoryField({ form, className }: { form: FormState; className?: string }) {
  const { draft, problems, change, check } = form;
  const { where } = draft;
  const field = where === 'folder' ? 'workdir' : 'repo';
  return (
    <div className={className}>
      <Field
        label={where === 'folder' ? 'Folder' : 'Repository'}
        error={where !== 'empty' && problems[field]}
      >
        {(control) => (
          <Combobox
            control={control}
            label="Repositories"
            value={where === 'empty' ? '' : draft[field]}
            disabled={where === 'empty'}
            placeholder={where === 'empty' ? 'None' : '/home/ana/code/shop'}
            options={form.repositories
              .filter((one) => where !== 'folder' || form.isWorkdir(one))
              .map(toOption)}
            note={form.repositories_note}
            onValue={(path) => change({ [field]: path })}
            onLeave={(path) => where === 'worktree' && check(path)}
          />
        )}
      </Field>
      {(problems.repo || (where === 'folder' && problems.workdir)) && <AllowedPaths form={form} />}
    </div>
  );
}

function toOption({ path, name, branch, dirty }: RepositoryRecord): ComboboxOption {
  const label = (
    <>
      <span className="flex min-w-0 gap-2">
        <span className="truncate font-medium">{escapeHidden(name)}</span>
        <span className="min-w-0 truncate text-muted">
          {branch === null ? 'detached' : escapeHidden(branch)}
        </span>
        {dirty && <span className="ml-auto shrink-0 text-warning">● uncommitted</span>}
      </span>
      <span className="block truncate font-mono text-muted text-sm">{escapeHidden(path)}</span>
    </>
  );
  return { value: path, label };
}
