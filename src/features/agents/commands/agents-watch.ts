/** `svc agents ls --watch`: prints agents as they change. */
import { sleep, Wake } from '../../../base/async.ts';
import type { Api } from '../../../cli/api.ts';
import type { Io } from '../../../cli/context.ts';
import { exitCodes, Failure } from '../../../cli/failure.ts';
import { isTemporary, type StreamState } from '../../../client/client.ts';
import { limits } from '../limits.ts';
import { onConnectionChange, reportConnection } from './follow.ts';

/**
 * Calls `show` at once, and again after agents may have changed or written output, at most once in
 * `limits.cli_watch_interval_ms` however many do. A call that fails because the plane does not answer is repeated. Throws
 * when Ctrl-C ends it.
 */
export async function watchAgents(io: Io, api: Api, show: () => Promise<void>): Promise<never> {
  await show();
  const changed = new Wake();
  const ended = new AbortController();
  const signal = AbortSignal.any([io.signal, ended.signal]);
  const showChanges = async () => {
    for (;;) {
      await changed.wait(undefined, signal);
      if (signal.aborted) return;
      try {
        await show();
      } catch (error) {
        if (!isTemporary(error)) throw error;
        changed.notify();
      }
      await sleep(limits.cli_watch_interval_ms, signal);
    }
  };
  const reportChange = onConnectionChange((lost) => reportConnection(io, api, lost));
  const onState = (state: StreamState) => {
    reportChange(state);
    // The list may have changed before the stream began.
    if (state === 'connected') changed.notify();
  };
  const followChanges = async () => {
    for await (const { event } of api.client.follow('followAll', { signal }, { onState }))
      if (event === 'agent' || event === 'activity') changed.notify();
  };
  const end = () => ended.abort();
  await Promise.all([showChanges().finally(end), followChanges().finally(end)]);
  throw new Failure(exitCodes.interrupted, '');
}
