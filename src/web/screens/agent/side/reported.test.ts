import { expect, test } from 'vitest';
import { response, sendRequest, update, viewOf } from '../../../../acp/transcript/testing.ts';
import { withReported } from './reported.ts';

const choices = [{ id: 'ask', name: 'Ask' }];
const option = { id: 'model', name: 'Model', type: 'select', currentValue: 'big', options: [] } as const;
const reported = {
  ...{
    modes: { currentModeId: 'ask', availableModes: choices },
    config_options: [{ ...option, options: [] }],
  },
  ...{ commands: [{ name: 'old', description: '' }], title: 'Old', agent: null, protocol_version: 1 },
};

test('settings that the log lacks are those that the service knows, and newer ones stay', () => {
  const none = withReported(viewOf(), reported);
  expect(none).toMatchObject(reported);
  const view = viewOf(
    sendRequest('session/set_mode', { modeId: 'auto' }, 'r1'),
    response({ result: {} }, 'r1'),
    update({ sessionUpdate: 'available_commands_update', availableCommands: [{ name: 'new' }] }),
  );
  expect(withReported(view, reported)).toMatchObject({
    modes: { currentModeId: 'auto', availableModes: choices },
    commands: [{ name: 'new' }],
    config_options: [option],
    title: 'Old',
  });
});
