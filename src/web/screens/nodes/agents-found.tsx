/** The agents that are installed on a node: as names in the list, and with versions and hints in the panel. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Check, CircleAlert } from 'lucide-react';
import { call } from '../../api/client.ts';
import type { PresetRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Disclosure } from '../../ui/disclosure.tsx';
import { ActionError, Skeleton } from '../../ui/states.tsx';
import { InstallHint } from '../new-agent/presets.tsx';
import { foundAgentsQuery } from './data.ts';
import { isSignedOut, sortPresets } from './found.ts';

/** How many names fit into a row of the list; the others are counted. */
const NAMED = 4;
const TOO_OLD = 'The svc on this node is too old to report which agents it has.';
const named = 'inline-flex items-center gap-1 whitespace-nowrap [&>svg]:size-3';

/** For a row of the list. */
export function AgentNames({ node_id }: { node_id: string }) {
  const { data, error } = useQuery(foundAgentsQuery(node_id));
  const sorted = data && sortPresets(data);
  if (!sorted) {
    const [text, why] = data
      ? ['Unknown', TOO_OLD]
      : error
        ? ['Could not be determined', error.message]
        : ['Looking…'];
    return (
      <span className="text-muted text-sm" title={why}>
        {text}
      </span>
    );
  }
  if (sorted.found.length === 0) return <span className="text-muted text-sm">None found</span>;
  const [shown, others] = [sorted.found.slice(0, NAMED), sorted.found.slice(NAMED)];
  return (
    <span className="flex max-h-9 min-w-0 flex-wrap items-center gap-x-2.5 overflow-hidden text-sm">
      {shown.map((preset) => (
        <span key={preset.id} title={titleOf(preset)} className={named}>
          {preset.name}
          <Mark preset={preset} />
        </span>
      ))}
      {others.length > 0 && (
        <span title={others.map(titleOf).join('\n')} className={named}>
          +{others.length}
          {others.some(isSignedOut) && <CircleAlert aria-hidden className="text-warning" />}
        </span>
      )}
    </span>
  );
}

function titleOf(preset: PresetRecord): string {
  const { name, version, sign_in_hint } = preset;
  return isSignedOut(preset)
    ? `${name} is not signed in. ${sign_in_hint ?? ''}`
    : `${name} is installed${version === null ? '' : ` · ${version}`}`;
}

function Mark({ preset }: { preset: PresetRecord }) {
  return isSignedOut(preset) ? (
    <>
      <CircleAlert aria-hidden className="text-warning" />
      <span className="sr-only">not signed in</span>
    </>
  ) : (
    <Check aria-hidden className="text-completed" />
  );
}

/** For a node that answers. */
export function AgentsFound({ node_id }: { node_id: string }) {
  const client = useQueryClient();
  const query = foundAgentsQuery(node_id);
  const read = useQuery(query);
  const check = useMutation({
    mutationFn: () => call('listPresets', { query: { node_id, refresh: true } }),
    onSuccess: (presets) => client.setQueryData(query.queryKey, presets),
  });
  const sorted = read.data && sortPresets(read.data);
  return (
    <section aria-labelledby="agents-found" className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h3 id="agents-found" className="font-medium">
          Agents found
        </h3>
        <Button busy={check.isPending || read.isFetching} onClick={() => check.mutate()}>
          {check.isPending || read.isFetching ? 'Checking…' : 'Check again'}
        </Button>
      </div>
      <ActionError error={check.error ?? read.error} />
      {sorted ? (
        <>
          {sorted.found.length === 0 && <p className="text-muted">No agent that svc knows is installed.</p>}
          <ul className="flex flex-col gap-1.5">
            {sorted.found.map((preset) => (
              <FoundAgent key={preset.id} preset={preset} />
            ))}
          </ul>
          <Missing presets={sorted.missing} />
        </>
      ) : read.data ? (
        <p className="text-muted">{TOO_OLD}</p>
      ) : (
        !read.error && <Skeleton rows={2} height="h-5" />
      )}
    </section>
  );
}

function FoundAgent({ preset }: { preset: PresetRecord }) {
  const { name, version, path, sign_in_hint } = preset;
  return (
    <li className="flex min-w-0 gap-2 [&>svg]:mt-0.5 [&>svg]:size-4 [&>svg]:shrink-0">
      <Mark preset={preset} />
      <div className="min-w-0">
        <p className="truncate" title={path ?? undefined}>
          {name} {version !== null && <span className="text-muted text-sm">{version}</span>}
        </p>
        {isSignedOut(preset) && <p className="break-words text-sm">Not signed in. {sign_in_hint}</p>}
      </div>
    </li>
  );
}

function Missing({ presets }: { presets: readonly PresetRecord[] }) {
  if (presets.length === 0) return null;
  return (
    <Disclosure summary={`${presets.length} not found`} lazy>
      <ul className="mt-1 flex flex-col gap-2">
        {presets.map(({ id, name, install_hint }) => (
          <li key={id} className="flex min-w-0 flex-col items-start gap-0.5">
            {name}
            <InstallHint hint={install_hint!} />
          </li>
        ))}
      </ul>
    </Disclosure>
  );
}
