/** The agent's settings, apart from those in the prompt field. The shown values are those that the agent reports. */
import type { SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk';
import type { AgentRecord } from '../../../api/queries.ts';
import { Field } from '../../../ui/field.tsx';
import { Select } from '../../../ui/select.tsx';
import { buildSettings, isPromptSetting, type Setting } from './choices.ts';
import { useSetting } from './use-setting.ts';

export function AgentSettings({
  agent,
  modes,
  options,
}: {
  agent: AgentRecord;
  modes: SessionModeState | null;
  options: readonly SessionConfigOption[];
}) {
  const settings = buildSettings(modes, options).flatMap((setting) =>
    isPromptSetting(setting) ? setting.more : [setting, ...setting.more],
  );
  if (settings.length === 0) return null;
  return (
    <section aria-label="Settings" className="flex flex-col gap-2">
      {settings.map((setting) => (
        <SettingField key={setting.option_id} agent={agent} setting={setting} />
      ))}
      {agent.status !== 'running' && (
        <p className="text-muted text-sm">Start the agent to change these settings.</p>
      )}
    </section>
  );
}

function SettingField({ agent, setting }: { agent: AgentRecord; setting: Setting }) {
  const { name, description, control } = setting;
  const { value, disabled, set } = useSetting(agent, setting);
  return (
    <Field label={name} hint={description ?? undefined}>
      {(field) =>
        control.type === 'choice' ? (
          <Select
            {...field}
            choices={control.choices}
            value={String(value)}
            disabled={disabled}
            onChange={set}
          />
        ) : (
          <input
            {...field}
            type="checkbox"
            className="size-6 self-start"
            checked={value === true}
            disabled={disabled}
            onChange={(event) => set(event.target.checked)}
          />
        )
      }
    </Field>
  );
}
