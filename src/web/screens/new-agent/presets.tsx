/** The choice of the preset, with what keeps it from working, and how to install others. */
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, errorMessage } from '../../api/client.ts';
import { type PresetRecord, presetsQuery } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Copy } from '../../ui/copy.tsx';
import { cx } from '../../ui/cx.ts';
import { Field } from '../../ui/field.tsx';
import { LazyDialog } from '../../ui/lazy-dialog.tsx';
import { type Choice, Select } from '../../ui/select.tsx';

/** The value of the item that opens the list of presets to install. */
const INSTALL = '+install';

export function PresetField({
  presets,
  error,
  chosen,
  assumed_name,
  node_id,
  className,
  onChoose,
}: {
  /** Undefined while they are loading. */
  presets: readonly PresetRecord[] | undefined;
  error: string | undefined;
  chosen: string;
  /** Shown while the presets are loading. */
  assumed_name: string;
  node_id: string;
  className?: string;
  onChoose: (preset_id: string) => void;
}) {
  const [installing, setInstalling] = useState(false);
  const all = presets ?? [];
  const missing = all.filter(({ installed }) => installed === false);
  return (
    <>
      <Field
        label="Agent"
        className={className}
        error={error}
        hint={<About preset={all.find(({ id }) => id === chosen)} />}
      >
        {(control) => (
          <Select
            {...control}
            value={chosen}
            onChange={(id) => (id === INSTALL ? setInstalling(true) : onChoose(id))}
            choices={choicesOf(all, chosen, assumed_name)}
          />
        )}
      </Field>
      <LazyDialog
        open={installing}
        onClose={() => setInstalling(false)}
        title="Install an agent"
        description={`Install one of these on ${node_id === 'main' ? 'the machine that svc runs on' : `node ${node_id}`}, then check again.`}
      >
        <Installation presets={missing} node_id={node_id} />
      </LazyDialog>
    </>
  );
}

/** Installed presets first, then those that need a command. Missing ones are behind the last item, unless chosen. */
export function choicesOf(presets: readonly PresetRecord[], chosen: string, assumed_name: string): Choice[] {
  const offered = presets.filter(({ id, installed }) => installed !== false || id === chosen);
  const known = offered
    .toSorted((a, b) => Number(a.argv === null) - Number(b.argv === null))
    .map((preset) => ({ value: preset.id, label: `${preset.name}${noteOf(preset)}` }));
  return [
    ...(known.some(({ value }) => value === chosen) ? [] : [{ value: chosen, label: assumed_name }]),
    ...known,
    ...(presets.some(({ installed }) => installed === false) ? [{ value: INSTALL, label: 'Install…' }] : []),
  ];
}

function noteOf({ installed, signed_in }: PresetRecord): string {
  if (installed === false) return ' (not installed)';
  return installed && signed_in === 'no' ? ' (not signed in)' : '';
}

/** Two lines, which most texts fit in, are reserved while the presets are loading. */
function About({ preset }: { preset: PresetRecord | undefined }) {
  const missing = preset && missingIn(preset);
  const text = preset ? `${preset.description}${preset.version ? ` · ${preset.version}` : ''}` : '\u00a0';
  return (
    <span className={cx('block min-h-[2lh] break-words', missing && 'text-warning')}>
      {missing === 'program' ? 'Not installed' : missing === 'sign_in' ? 'Not signed in' : text}
    </span>
  );
}

function missingIn({ installed, install_hint, signed_in, sign_in_hint }: PresetRecord) {
  if (installed === false && install_hint) return 'program';
  return installed && signed_in === 'no' && sign_in_hint ? 'sign_in' : null;
}

/** What to do before the chosen preset works. Below all fields, so that none of them moves when it appears. */
export function PresetNotice({ preset }: { preset: PresetRecord | undefined }) {
  const missing = preset && missingIn(preset);
  if (!missing) return null;
  const { name, install_hint = '', sign_in_hint } = preset;
  return (
    <p className="break-words text-warning text-sm">
      {missing === 'sign_in' ? (
        `${name} is not signed in. ${sign_in_hint}`
      ) : isCommand(install_hint!) ? (
        <>
          {name} is not installed. Install it with <code className="font-mono">{install_hint}</code>
        </>
      ) : (
        `${name} is not installed. Install ${install_hint}.`
      )}
    </p>
  );
}

/** Other hints say in words what to install. */
function isCommand(install_hint: string): boolean {
  return !install_hint.startsWith('the ');
}

/** How to install an agent, with a button that copies the command if it is one. */
export function InstallHint({ hint }: { hint: string }) {
  if (!isCommand(hint)) return <p className="text-sm">Install {hint}.</p>;
  return (
    <div className="flex w-full items-center gap-2">
      <code className="min-w-0 flex-1 break-all font-mono text-sm">{hint}</code>
      <Copy text={hint} />
    </div>
  );
}

function Installation({ presets, node_id }: { presets: readonly PresetRecord[]; node_id: string }) {
  const client = useQueryClient();
  const [checking, setChecking] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const check = async () => {
    setChecking(true);
    try {
      const found = await call('listPresets', { query: { node_id, refresh: true } });
      client.setQueryData(presetsQuery(node_id).queryKey, found);
      setError(null);
    } catch (failure) {
      setError(errorMessage(failure));
    }
    setChecking(false);
  };
  return (
    <div className="flex flex-col gap-3">
      {presets.length === 0 && <p>All agents are installed.</p>}
      <ul className="flex flex-col gap-3">
        {presets.map(({ id, name, description, install_hint }) => (
          <li key={id} className="flex flex-col gap-1">
            <p>
              <span className="font-medium">{name}</span> <span className="text-muted">{description}</span>
            </p>
            {install_hint && <InstallHint hint={install_hint} />}
          </li>
        ))}
      </ul>
      {error && (
        <p role="alert" className="text-failed">
          {error}
        </p>
      )}
      <Button className="self-end" busy={checking} onClick={check}>
        {checking ? 'Checking…' : 'Check again'}
      </Button>
    </div>
  );
}
