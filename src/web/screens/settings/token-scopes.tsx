/** The scopes of a new token: a checkbox for each that the user can give it. */
import type { Scope } from '../../../core/grant.ts';

const meanings: Record<Scope, string> = {
  read: 'view records, logs and streams',
  operate: 'start and stop agents, send input, prompts and mail, answer approvals',
  manage: 'create, change and delete agents, teams and tasks',
  admin: 'users, nodes, configuration and the audit log',
  metrics: 'read /metrics',
};

export function Scopes({
  offered,
  chosen,
  error,
  onChange,
}: {
  offered: readonly Scope[];
  chosen: readonly Scope[];
  error: string | undefined;
  onChange: (scopes: Scope[]) => void;
}) {
  const toggle = (scope: Scope, on: boolean) =>
    onChange(offered.filter((item) => (item === scope ? on : chosen.includes(item))));
  return (
    <fieldset className="flex flex-col gap-1">
      <legend className="font-medium text-sm">Scopes</legend>
      {offered.map((scope) => (
        <label key={scope} className="tap flex items-center gap-2">
          <input
            type="checkbox"
            checked={chosen.includes(scope)}
            onChange={(event) => toggle(scope, event.target.checked)}
            className="size-4 shrink-0 accent-accent"
          />
          <span>
            {scope} <span className="text-muted text-sm">{meanings[scope]}</span>
          </span>
        </label>
      ))}
      {error && (
        <p role="alert" className="text-failed text-sm">
          {error}
        </p>
      )}
    </fieldset>
  );
}
