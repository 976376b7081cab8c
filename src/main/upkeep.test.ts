import { describe, expect, it, vi } from 'vitest';
import { checkDatabase } from './upkeep.ts';

describe('the check of a database after an unclean stop', () => {
  async function check(result: Promise<string[]>, stopping = new AbortController().signal) {
    const log = { error: vi.fn(), warn: vi.fn() };
    await checkDatabase({ check: () => result }, log, stopping);
    return log;
  }

  it('reports damage as an error', async () => {
    const { error, warn } = await check(Promise.resolve(['row 3 missing from index']));
    expect(error).toHaveBeenCalledExactlyOnceWith(
      { problems: ['row 3 missing from index'] },
      expect.stringContaining('svc restore'),
    );
    expect(warn).not.toHaveBeenCalled();
  });

  it('says nothing about a sound database', async () => {
    const { error, warn } = await check(Promise.resolve([]));
    expect(error).not.toHaveBeenCalled();
    expect(warn).not.toHaveBeenCalled();
  });

  it('does not take a check that could not finish for damage', async () => {
    const { error, warn } = await check(Promise.reject(new Error('out of memory')));
    expect(error).not.toHaveBeenCalled();
    expect(warn).toHaveBeenCalledOnce();
  });

  it('says nothing when the service stops during the check', async () => {
    const { error, warn } = await check(
      Promise.reject(new Error('the worker thread ended')),
      AbortSignal.abort(),
    );
    expect(error).not.toHaveBeenCalled();
    expect(warn).not.toHaveBeenCalled();
  });
});
