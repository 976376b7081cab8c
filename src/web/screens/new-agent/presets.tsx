/** The choice of the preset. Installed ones come first; each shows what keeps it from working. */
import type { UseQueryResult } from '@tanstack/react-query';
import { Check, TriangleAlert } from 'lucide-react';
import { errorMessage } from '../../api/client.ts';
import type { PresetRecord } from '../../api/queries.ts';
import { cx } from '../../ui/cx.ts';

/** Installed presets first, then those that need a command, then missing ones; otherwise the order of the service. */
export function installedFirst(presets: readonly PresetRecord[]): PresetRecord[] {
  const rank = (preset: PresetRecord) => (preset.argv === null ? 2 : preset.installed === false ? 3 : 1);
  return presets.toSorted((a, b) => rank(a) - rank(b));
}

export function PresetChoice({
  read,
  chosen,
  onChoose,
}: {
  read: UseQueryResult<PresetRecord[]>;
  chosen: string;
  onChoose: (id: string) => void;
}) {
  const presets = installedFirst(read.data ?? []);
  const preset = presets.find(({ id }) => id === chosen);
  const missing = presets.filter(({ installed, id }) => installed === false && id !== chosen);
  const offered = presets.filter((each) => !missing.includes(each));
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="mb-1 font-medium text-sm">Agent</legend>
      {read.error && <p className="text-failed text-sm">{errorMessage(read.error)}</p>}
      <div className="flex min-h-9 flex-wrap gap-2">
        {offered.map((each) => (
          <Choice key={each.id} preset={each} chosen={each.id === chosen} onChoose={onChoose} />
        ))}
      </div>
      {missing.length > 0 && (
        <details>
          <summary className="tap inline-flex cursor-pointer items-center text-muted text-sm">
            {missing.length} more, not installed on this node
          </summary>
          <div className="flex flex-wrap gap-2 pt-1">
            {missing.map((each) => (
              <Choice key={each.id} preset={each} chosen={false} onChoose={onChoose} />
            ))}
          </div>
        </details>
      )}
      {preset && <About preset={preset} />}
    </fieldset>
  );
}

function Choice({
  preset,
  chosen,
  onChoose,
}: {
  preset: PresetRecord;
  chosen: boolean;
  onChoose: (id: string) => void;
}) {
  return (
    <label
      className={cx(
        'tap inline-flex cursor-pointer items-center gap-1.5 rounded-md border px-2.5 has-focus-visible:outline-2 has-focus-visible:outline-accent',
        chosen ? 'border-accent bg-surface font-medium' : 'border-line-strong/60',
      )}
    >
      <input
        type="radio"
        name="preset"
        className="sr-only"
        checked={chosen}
        onChange={() => onChoose(preset.id)}
      />
      {preset.name}
      {preset.installed && preset.signed_in !== 'no' && (
        <Check aria-label="installed" className="size-3.5 text-completed" />
      )}
      {preset.installed && preset.signed_in === 'no' && (
        <TriangleAlert aria-label="not signed in" className="size-3.5 text-needs" />
      )}
    </label>
  );
}

function About({ preset }: { preset: PresetRecord }) {
  const missing = preset.installed === false;
  return (
    <div className="text-muted text-sm">
      <p>
        {preset.description}
        {preset.version && ` · ${preset.version}`}
      </p>
      {missing && preset.install_hint && (
        <p className="text-needs">
          Not installed on this node. Install it with{' '}
          <code className="break-all font-mono">{preset.install_hint}</code>
        </p>
      )}
      {!missing && preset.signed_in === 'no' && preset.sign_in_hint && (
        <p className="text-needs">
          Not signed in. <span className="break-words">{preset.sign_in_hint}</span>
        </p>
      )}
    </div>
  );
}
