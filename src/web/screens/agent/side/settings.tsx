/** The agent's mode, model and other settings. The shown values are those that the agent reports. */
import type { SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk';
import { useMutation } from '@tanstack/react-query';
import { Fragment } from 'react';
import { call, errorMessage } from '../../../api/client.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { Field } from '../../../ui/field.tsx';
import { Select } from '../../../ui/select.tsx';
import { buildSettings, type Setting } from './choices.ts';

export function AgentSettings({
  agent,
  modes,
  options,
}: {
  agent: AgentRecord;
  modes: SessionModeState | null;
  options: readonly SessionConfigOption[];
}) {
  const settings = buildSettings(modes, options);
  if (settings.length === 0) return null;
  return (
    <section aria-label="Settings" className="flex flex-col gap-2">
      {settings.map((setting) => (
        <Fragment key={setting.option_id ?? 'the mode'}>
          <SettingField agent={agent} setting={setting} />
          {setting.more.length > 0 && (
            <details>
              <summary className="tap cursor-pointer text-muted text-sm">
                {setting.name}: {setting.more.length} more
              </summary>
              <div className="mt-1 flex flex-col gap-2 border-line border-l pl-3">
                {setting.more.map((item) => (
                  <SettingField key={item.option_id} agent={agent} setting={item} />
                ))}
              </div>
            </details>
          )}
        </Fragment>
      ))}
      {agent.status !== 'running' && (
        <p className="text-muted text-sm">Start the agent to change these settings.</p>
      )}
    </section>
  );
}

function SettingField({ agent, setting }: { agent: AgentRecord; setting: Setting }) {
  const { option_id, name, description, control } = setting;
  const set = useMutation({
    mutationFn: (value: string | boolean) =>
      call('setAgentConfig', {
        params: { agent_id: agent.id },
        body: option_id === null ? { mode_id: String(value) } : { options: { [option_id]: value } },
      }),
  });
  const disabled = agent.status !== 'running' || set.isPending;
  // Shown until the agent reports its value.
  const pending_value = set.isPending ? set.variables : undefined;
  return (
    <Field label={name} hint={description ?? undefined} error={set.isError && errorMessage(set.error)}>
      {(field) =>
        control.type === 'choice' ? (
          <Select
            {...field}
            choices={control.choices}
            value={typeof pending_value === 'string' ? pending_value : control.value}
            disabled={disabled}
            onChange={(value) => set.mutate(value)}
          />
        ) : (
          <input
            {...field}
            type="checkbox"
            className="size-6 self-start"
            checked={typeof pending_value === 'boolean' ? pending_value : control.on}
            disabled={disabled}
            onChange={(event) => set.mutate(event.target.checked)}
          />
        )
      }
    </Field>
  );
}
