import type { SessionConfigOption } from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { buildSettings } from './choices.ts';

const modes = { currentModeId: 'ask', availableModes: [{ id: 'ask', name: 'Ask', description: 'Asks' }] };
const model: SessionConfigOption = {
  id: 'model',
  name: 'Model',
  type: 'select',
  currentValue: 'gone',
  options: [{ group: 'g', name: 'Large', options: [{ value: 'l1', name: 'One' }] }],
};

test('settings keep the agent’s order, after the mode', () => {
  const agentThought: SessionConfigOption = {
    id: 'thinks',
    name: 'Thinks',
    type: 'boolean',
    currentValue: true,
  };
  const settings = buildSettings(modes, [model, agentThought]);
  expect(settings.map(({ option_id }) => option_id)).toEqual([null, 'model', 'thinks']);
  expect(settings[2]!.control).toEqual({ type: 'switch', on: true });
});

test('a mode that is also an option is listed once', () => {
  const mode: SessionConfigOption = { ...model, id: 'mode', category: 'mode' };
  expect(buildSettings(modes, [mode]).map(({ option_id }) => option_id)).toEqual(['mode']);
  expect(buildSettings(null, [])).toEqual([]);
});

test('choices include the names of their groups, and a current value that is not offered', () => {
  expect(buildSettings(null, [model])[0]!.control).toEqual({
    type: 'choice',
    value: 'gone',
    choices: [
      { value: 'gone', label: 'gone' },
      { value: 'l1', label: 'Large · One' },
    ],
  });
});

test('the settings of a model are listed with it, or separately if there is no model', () => {
  const effort: SessionConfigOption = {
    ...{ id: 'effort', name: 'Effort', type: 'boolean', currentValue: true },
    category: 'model_config',
  };
  const ids = (options: SessionConfigOption[]) =>
    buildSettings(null, options).map(({ option_id, more }) => [
      option_id,
      ...more.map((item) => item.option_id),
    ]);
  expect(
    ids([effort, { ...model, category: 'model' }, { ...effort, id: 'other', category: 'other' }]),
  ).toEqual([['model', 'effort'], ['other']]);
  expect(ids([effort, model])).toEqual([['effort'], ['model']]);
});
