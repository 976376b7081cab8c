/** The agent's mode and model, in the prompt field. */
import { memo } from 'react';
import type { Settings } from '../../../../acp/transcript/settings.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { Select } from '../../../ui/select.tsx';
import { buildSettings, isPromptSetting, type Setting } from '../side/choices.ts';
import { useSetting } from '../side/use-setting.ts';

export const PromptSettings = memo(function PromptSettings({
  agent,
  modes,
  options,
}: {
  agent: AgentRecord;
  modes: Settings['modes'];
  options: Settings['config_options'];
}) {
  return buildSettings(modes, options)
    .filter(isPromptSetting)
    .map((setting) => (
      <SettingSelect key={setting.option_id ?? 'the mode'} agent={agent} setting={setting} />
    ));
});

function SettingSelect({ agent, setting }: { agent: AgentRecord; setting: Setting }) {
  const { value, disabled, set } = useSetting(agent, setting);
  const { control, name, description } = setting;
  if (control.type !== 'choice') return null;
  return (
    <Select
      quiet
      aria-label={name}
      title={description === null ? name : `${name}: ${description}`}
      value={String(value)}
      disabled={disabled}
      choices={control.choices}
      onChange={set}
      className="max-w-44 max-sm:max-w-24 max-sm:pointer-coarse:appearance-none"
    />
  );
}
