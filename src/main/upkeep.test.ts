import { describe, expect, it, vi } from 'vitest';
import { checkDatabase } from './upkeep.ts';

describe('the database check in the background', () => {
  async function check(result: Promise<string[]>, stopping = new AbortController().signal) {
    const log = { error: vi.fn(), warn: vi.fn() };
    await checkDatabase({ check: () => result }, log, stopping);
    return log;
  }

  it('logs damage as an error', async () => {
    const { error, warn } = await check(Promise.resolve(['row 3 missing from index']));
    expect(error).toHaveBeenCalledExactlyOnceWith(
      { problems: ['row 3 missing from index'] },
      expect.stringContaining('svc restore'),
    );
    expect(warn).not.toHaveBeenCalled();
  });

  it('logs nothing for a sound database', async () => {
    const { error, warn } = await check(Promise.resolve([]));
    expect(error).not.toHaveBeenCalled();
    expect(warn).not.toHaveBeenCalled();
  });

  it('logs a check that could not finish as a warning, not as damage', async () => {
    const { error, warn } = await check(Promise.reject(new Error('out of memory')));
    expect(error).not.toHaveBeenCalled();
    expect(warn).toHaveBeenCalledOnce();
  });

  it('logs nothing if the service stops during the check', async () => {
    const { error, warn } = await check(
      Promise.reject(new Error('the worker thread ended')),
      AbortSignal.abort(),
    );
    expect(error).not.toHaveBeenCalled();
    expect(warn).not.toHaveBeenCalled();
  });
});
