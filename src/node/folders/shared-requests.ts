/** Combines requests for a folder, because each one costs several git processes. */

import { problems } from '../../core/problem.ts';
import { limits } from '../limits.ts';

/** Identical requests share the result of the first one while it is in progress. */
export function shareInFlight(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const working = new Map<string, Promise<unknown>>();
  return <T>(key: string, work: () => Promise<T>) => {
    const pending = working.get(key);
    if (pending !== undefined) return pending as Promise<T>;
    const result = work().finally(() => working.delete(key));
    working.set(key, result);
    return result;
  };
}

interface Batch<T> {
  requests: Set<string>;
  answers: Promise<ReadonlyMap<string, T>>;
}

/**
 * Collects different requests for the same folder while an earlier batch is running, and then runs them together. `run`
 * gets a function that closes the batch and returns its requests, at most `limits.find_batch_max`; it must return the
 * results in the same order. A request that no longer fits throws `too_many_folder_jobs`.
 */
export function batchRequests<T>(
  run: (folder: string, owner: string | undefined, takeRequests: () => string[]) => Promise<T[]>,
): (folder: string, owner: string | undefined, request: string) => Promise<T> {
  const open = new Map<string, Batch<T>>();
  const last = new Map<string, Promise<unknown>>();

  const openBatch = (folder: string, owner: string | undefined): Batch<T> => {
    const requests = new Set<string>();
    const close = () => {
      if (open.get(folder) === batch) open.delete(folder);
      return [...requests];
    };
    const work = async () => {
      const answers = await run(folder, owner, close).finally(close);
      // A worker may return too few answers.
      if (answers.length < requests.size) throw problems.nodeUnreachable();
      return new Map([...requests].map((request, at) => [request, answers[at]!]));
    };
    const before = last.get(folder) ?? Promise.resolve();
    const answers = before.then(work, work).finally(() => {
      if (last.get(folder) === answers) last.delete(folder);
    });
    const batch = { requests, answers };
    open.set(folder, batch);
    last.set(folder, answers);
    return batch;
  };

  return async (folder, owner, request) => {
    const { requests, answers } = open.get(folder) ?? openBatch(folder, owner);
    if (requests.size >= limits.find_batch_max && !requests.has(request)) {
      throw problems.tooManyFolderJobs();
    }
    requests.add(request);
    return (await answers).get(request)!;
  };
}
