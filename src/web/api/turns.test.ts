import { afterEach, expect, test, vi } from 'vitest';
import { problems } from '../../core/problem.ts';
import { cancelTurnOf, isBehindTurn, readCurrentPrompt } from './turns.ts';

const calls = vi.hoisted(() => ({ call: vi.fn() }));
vi.mock('./client.ts', () => calls);
afterEach(() => void calls.call.mockReset());

const prompt = (id: string, state: string) => ({ id, state });

test('only the turn of a prompt is cancelled, and whether it had ended is said', async () => {
  calls.call.mockResolvedValueOnce([prompt('a', 'sent'), prompt('b', 'queued')]);
  const current = await readCurrentPrompt('agt_1');
  calls.call.mockResolvedValueOnce({});
  expect(await cancelTurnOf('agt_1', current)).toBe(true);
  expect(calls.call).toHaveBeenLastCalledWith('cancelTurn', {
    params: { agent_id: 'agt_1' },
    body: { prompt_id: 'a' },
  });
  calls.call.mockRejectedValueOnce(problems.noTurn());
  expect(await cancelTurnOf('agt_1', null)).toBe(false);
  calls.call.mockRejectedValueOnce(problems.agentNotRunning());
  await expect(cancelTurnOf('agt_1', null)).rejects.toThrow('not running');
});

test('a queued prompt is behind a turn while another one runs', () => {
  expect(isBehindTurn([prompt('a', 'sent'), prompt('b', 'queued')], 'b')).toBe(true);
  expect(isBehindTurn([prompt('b', 'sent')], 'b')).toBe(false);
  // Its turn is about to begin.
  expect(isBehindTurn([prompt('b', 'queued')], 'b')).toBe(false);
  expect(isBehindTurn([], 'b')).toBe(false);
});
