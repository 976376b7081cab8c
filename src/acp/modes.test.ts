import type { SessionConfigOption } from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { currentMode, type ModeOffers, modeSetting, withConsistentMode } from './modes.ts';

const modes = (currentModeId: string): ModeOffers['modes'] => ({
  currentModeId,
  availableModes: ['ask', 'auto'].map((id) => ({ id, name: id })),
});
const option = (currentValue: string): SessionConfigOption => ({
  ...{ id: 'mode', name: 'Mode', category: 'mode', type: 'select', currentValue },
  options: ['ask', 'auto'].map((value) => ({ value, name: value })),
});
const both = (session: string, value: string): ModeOffers => ({
  modes: modes(session),
  config_options: [option(value)],
});
const none: ModeOffers = { modes: null, config_options: [] };

test('the current mode is the session mode, or else the option that replaces it', () => {
  expect(currentMode({ modes: modes('ask'), config_options: [] })).toBe('ask');
  expect(currentMode({ modes: null, config_options: [option('auto')] })).toBe('auto');
  expect(currentMode(none)).toBeNull();
});

test('a mode is set by session/set_mode, or else by the option, if either offers it', () => {
  const set_mode = { method: 'session/set_mode', params: { modeId: 'ask' } };
  expect(modeSetting(both('auto', 'auto'), 'ask')).toEqual(set_mode);
  expect(modeSetting({ modes: null, config_options: [option('auto')] }, 'ask')).toEqual({
    method: 'session/set_config_option',
    params: { configId: 'mode', value: 'ask' },
  });
  expect(modeSetting(both('auto', 'auto'), 'other')).toBeNull();
  expect(modeSetting({ modes: null, config_options: [option('auto')] }, 'other')).toBeNull();
  // A session that was resumed may report nothing.
  expect(modeSetting(none, 'ask')).toEqual(set_mode);
});

test('the last reported mode is current in both places', () => {
  const before = both('auto', 'auto');
  expect(withConsistentMode(before, both('ask', 'auto'))).toEqual(both('ask', 'ask'));
  expect(withConsistentMode(before, both('auto', 'ask'))).toEqual(both('ask', 'ask'));
  expect(withConsistentMode(none, both('ask', 'auto'))).toEqual(both('ask', 'ask'));
  const same = both('ask', 'ask');
  expect(withConsistentMode(before, same)).toBe(same);
});
