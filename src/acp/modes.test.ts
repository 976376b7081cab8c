import type { SessionConfigOption } from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { currentMode, findModeRequest, type ModeState, withConsistentMode } from './modes.ts';

const modes = (currentModeId: string): ModeState['modes'] => ({
  currentModeId,
  availableModes: ['ask', 'auto'].map((id) => ({ id, name: id })),
});
const option = (currentValue: string): SessionConfigOption => ({
  ...{ id: 'mode', name: 'Mode', category: 'mode', type: 'select', currentValue },
  options: ['ask', 'auto'].map((value) => ({ value, name: value })),
});
const both = (session: string, value: string): ModeState => ({
  modes: modes(session),
  config_options: [option(value)],
});
const none: ModeState = { modes: null, config_options: [] };

test('the current mode is the session mode, or else the option that replaces it', () => {
  expect(currentMode({ modes: modes('ask'), config_options: [] })).toBe('ask');
  expect(currentMode({ modes: null, config_options: [option('auto')] })).toBe('auto');
  expect(currentMode(none)).toBeNull();
});

test('a mode is set by session/set_mode, or else by the option, if either offers it', () => {
  const set_mode = { method: 'session/set_mode', params: { modeId: 'ask' } };
  expect(findModeRequest(both('auto', 'auto'), 'ask')).toEqual(set_mode);
  expect(findModeRequest({ modes: null, config_options: [option('auto')] }, 'ask')).toEqual({
    method: 'session/set_config_option',
    params: { configId: 'mode', value: 'ask' },
  });
  expect(findModeRequest(both('auto', 'auto'), 'other')).toBeNull();
  expect(findModeRequest({ modes: null, config_options: [option('auto')] }, 'other')).toBeNull();
  // A session that was resumed may report nothing.
  expect(findModeRequest(none, 'ask')).toEqual(set_mode);
});

test('the last reported mode is current in both places', () => {
  const before = both('auto', 'auto');
  expect(withConsistentMode(before, both('ask', 'auto'))).toEqual(both('ask', 'ask'));
  expect(withConsistentMode(before, both('auto', 'ask'))).toEqual(both('ask', 'ask'));
  expect(withConsistentMode(none, both('ask', 'auto'))).toEqual(both('ask', 'ask'));
  const same = both('ask', 'ask');
  expect(withConsistentMode(before, same)).toBe(same);
});
