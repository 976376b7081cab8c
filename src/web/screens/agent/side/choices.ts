/** An agent's settings, in its own order (pure). */
import type { SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk';
import type { Choice } from '../../../ui/select.tsx';

export interface Setting {
  /** Null: the mode. */
  option_id: string | null;
  name: string;
  /** What it is about, as the agent says: `mode`, `model` or another word; null if it does not say. */
  category: string | null;
  description: string | null;
  control: { type: 'choice'; value: string; choices: Choice[] } | { type: 'switch'; on: boolean };
  /** Settings that belong to this one, such as those of a model. */
  more: Setting[];
}

/** Older agents have modes instead of options. If an option is the mode, the modes are a duplicate. */
export function buildSettings(
  modes: SessionModeState | null,
  options: readonly SessionConfigOption[],
): Setting[] {
  const model = options.find(({ category }) => category === 'model');
  const of_model = model ? options.filter(({ category }) => category === 'model_config') : [];
  const settings = options
    .filter((option) => !of_model.includes(option))
    .flatMap((option) => toSettings(option, option === model ? of_model : []));
  const is_option = options.some(({ category }) => category === 'mode');
  if (modes === null || is_option || modes.availableModes.length === 0) return settings;
  const choices = modes.availableModes.map(({ id, name }) => ({ value: id, label: name }));
  const value = modes.currentModeId;
  const mode: Setting = {
    option_id: null,
    name: 'Mode',
    category: 'mode',
    description: modes.availableModes.find(({ id }) => id === value)?.description ?? null,
    control: { type: 'choice', value, choices: withCurrent(choices, value) },
    more: [],
  };
  return [mode, ...settings];
}

function toSettings(option: SessionConfigOption, of_it: readonly SessionConfigOption[] = []): Setting[] {
  const { id, name, description } = option;
  const more = of_it.flatMap((item) => toSettings(item));
  const about = {
    option_id: id,
    name,
    category: option.category ?? null,
    description: description ?? null,
    more,
  };
  if (option.type === 'boolean') {
    return [{ ...about, control: { type: 'switch', on: option.currentValue === true } }];
  }
  if (option.type !== 'select' || !Array.isArray(option.options)) return [];
  const choices = option.options.flatMap((option) =>
    'options' in option
      ? option.options.map(({ value, name }) => ({ value, label: `${option.name} · ${name}` }))
      : [{ value: option.value, label: option.name }],
  );
  const value = String(option.currentValue);
  return [{ ...about, control: { type: 'choice', value, choices: withCurrent(choices, value) } }];
}

/** An agent's current value may be missing in its choices. */
function withCurrent(choices: Choice[], value: string): Choice[] {
  return choices.some((choice) => choice.value === value) ? choices : [{ value, label: value }, ...choices];
}

/** Whether it is in the prompt field: the mode and the model, which people change from prompt to prompt. */
export function isPromptSetting({ category, control }: Setting): boolean {
  return control.type === 'choice' && (category === 'mode' || category === 'model');
}
