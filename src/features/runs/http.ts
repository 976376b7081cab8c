/** HTTP handlers for runs: parse, call, shape the response. */
import { parsePosition } from '../../events/position.ts';
import type { Handlers } from '../../server/call.ts';
import { asCappedList, asList, asShortList } from '../../server/list.ts';
import { lastEventId, type Streams } from '../../server/sse.ts';
import type { Tokens } from '../tokens/service.ts';
import type { RunDeleter } from './deletion.ts';
import type { RunEvents } from './run-events.ts';
import type { Runs } from './service.ts';

type RunOperations =
  | 'listRuns'
  | 'listAllRuns'
  | 'createRun'
  | 'getRun'
  | 'deleteRun'
  | 'findRun'
  | 'listRunMembers'
  | 'cancelRun'
  | 'resumeRun'
  | 'restartRun'
  | 'completeRun'
  | 'failRun'
  | 'listSteps'
  | 'listWaitingSteps'
  | 'listWaitingRuns'
  | 'addStep'
  | 'startStep'
  | 'completeStep'
  | 'failStep'
  | 'requireStepInput'
  | 'resumeStep'
  | 'followRun';

export function runHandlers(deps: {
  runs: Runs;
  deleter: RunDeleter;
  events: RunEvents;
  tokens: Tokens;
  streams: Streams;
}): Pick<Handlers, RunOperations> {
  const { runs, deleter, events, tokens, streams } = deps;
  return {
    listRuns: async ({ caller, params, query }) =>
      asList(query, await runs.list(caller, params.team_id, query, query)),
    listAllRuns: async (call) => {
      const { caller, query } = call;
      return asCappedList(call, await runs.listAll(caller, query, query));
    },
    createRun: async ({ caller, params, body, idempotency_key }) => {
      const run = await runs.create(caller, params.team_id, body.input, idempotency_key);
      return { location: `/api/teams/${run.team_id}/runs/${run.id}`, body: run };
    },
    getRun: ({ caller, params }) => runs.get(caller, params.run_id, params.team_id),
    deleteRun: ({ caller, params, query: { delete_worktrees = false, dry_run = false } }) =>
      deleter.delete(caller, params, { delete_worktrees, dry_run }),
    findRun: ({ caller, params }) => runs.get(caller, params.run_id),
    listRunMembers: ({ caller, params }) => runs.members(caller, params.run_id),
    cancelRun: ({ caller, params, idempotency_key }) =>
      runs.commandRun(caller, params, { kind: 'cancelRun' }, idempotency_key),
    resumeRun: ({ caller, params, body, idempotency_key }) =>
      runs.commandRun(caller, params, { kind: 'resumeRun', ...body }, idempotency_key),
    restartRun: ({ caller, params, body, idempotency_key }) =>
      runs.commandRun(caller, params, { kind: 'restartRun', ...body }, idempotency_key),
    completeRun: ({ caller, params, body, idempotency_key }) =>
      runs.commandRun(caller, params, { kind: 'completeRun', ...body }, idempotency_key),
    failRun: ({ caller, params, body, idempotency_key }) =>
      runs.commandRun(caller, params, { kind: 'failRun', ...body }, idempotency_key),
    listWaitingSteps: async ({ caller, query }) => asList(query, await runs.waitingSteps(caller, query)),
    listWaitingRuns: async ({ caller, query }) => asList(query, await runs.waitingRuns(caller, query)),
    listSteps: async ({ caller, params, query }) =>
      asShortList(query, await runs.steps(caller, params.team_id, params.run_id)),
    addStep: async ({ caller, params, body, idempotency_key }) => {
      const step = await runs.addStep(caller, params, body, idempotency_key);
      return { location: `/api/teams/${params.team_id}/runs/${params.run_id}/steps`, body: step };
    },
    startStep: ({ caller, params, idempotency_key }) =>
      runs.commandStep(caller, params, { kind: 'startStep' }, idempotency_key),
    completeStep: ({ caller, params, body, idempotency_key }) =>
      runs.commandStep(caller, params, { kind: 'completeStep', ...body }, idempotency_key),
    failStep: ({ caller, params, body, idempotency_key }) =>
      runs.commandStep(caller, params, { kind: 'failStep', ...body }, idempotency_key),
    requireStepInput: ({ caller, params, body, idempotency_key }) =>
      runs.commandStep(caller, params, { kind: 'requireStepInput', ...body }, idempotency_key),
    resumeStep: ({ caller, params, body, idempotency_key }) =>
      runs.commandStep(caller, params, { kind: 'resumeStep', ...body }, idempotency_key),
    followRun: async (call) => {
      const { caller, params, query } = call;
      await runs.get(caller, params.run_id, params.team_id);
      const position = parsePosition({ last_event_id: lastEventId(call), ...query });
      const mayRead = () =>
        runs.get(caller, params.run_id, params.team_id).then(
          () => true,
          () => false,
        );
      await streams.serve(
        call,
        (signal) => events.follow(params.run_id, position, signal),
        async () => (await tokens.isLive(caller.token_id)) && (await mayRead()),
      );
    },
  };
}
