/** The agent's mode and model, in the prompt field. */
import { memo } from 'react';
import type { Settings } from '../../../../acp/transcript/settings.ts';
import type { AgentRecord } from '../../../api/queries.ts';
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
    <select
      aria-label={name}
      title={description === null ? name : `${name}: ${description}`}
      value={String(value)}
      disabled={disabled}
      onChange={(event) => set(event.target.value)}
      className="select tap min-w-0 max-w-44 cursor-pointer gap-1.5 truncate rounded-md bg-transparent px-1.5 text-muted text-sm [field-sizing:content] hover:bg-surface hover:text-text disabled:opacity-60 max-sm:max-w-24 max-sm:pointer-coarse:appearance-none"
    >
      {control.choices.map((choice) => (
        <option key={choice.value} value={choice.value}>
          {choice.label}
        </option>
      ))}
    </select>
  );
}
