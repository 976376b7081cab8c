/** Runs of teams over HTTP: parse, call, shape the answer. */
import { parsePosition } from '../events/position.ts';
import type { RunEvents } from '../services/teams/run-events.ts';
import type { Runs } from '../services/teams/runs.ts';
import type { Tokens } from '../services/tokens.ts';
import type { Handlers } from './call.ts';
import { asList } from './list.ts';
import type { Streams } from './sse.ts';
import { lastEventId } from './streams.ts';

type RunOperations =
  | 'listRuns'
  | 'createRun'
  | 'getRun'
  | 'findRun'
  | 'listRunMembers'
  | 'cancelRun'
  | 'resumeRun'
  | 'restartRun'
  | 'completeRun'
  | 'failRun'
  | 'listSteps'
  | 'addStep'
  | 'startStep'
  | 'completeStep'
  | 'failStep'
  | 'requireStepInput'
  | 'resumeStep'
  | 'followRun';

export function runHandlers(deps: {
  runs: Runs;
  events: RunEvents;
  tokens: Tokens;
  streams: Streams;
}): Pick<Handlers, RunOperations> {
  const { runs, events, tokens, streams } = deps;
  return {
    listRuns: async ({ caller, params, query }) =>
      asList(query, await runs.list(caller, params.team_id, query, query)),
    createRun: async ({ caller, params, body, idempotency_key }) => {
      const run = await runs.create(caller, params.team_id, body.input, idempotency_key);
      return { location: `/api/teams/${run.team_id}/runs/${run.id}`, body: run };
    },
    getRun: ({ caller, params }) => runs.get(caller, params.run_id, params.team_id),
    findRun: ({ caller, params }) => runs.get(caller, params.run_id),
    listRunMembers: ({ caller, params }) => runs.members(caller, params.run_id),
    cancelRun: ({ caller, params, idempotency_key }) =>
      runs.say(caller, params, { kind: 'cancel' }, idempotency_key),
    resumeRun: ({ caller, params, idempotency_key }) =>
      runs.say(caller, params, { kind: 'resume' }, idempotency_key),
    restartRun: ({ caller, params, idempotency_key }) =>
      runs.say(caller, params, { kind: 'restart' }, idempotency_key),
    completeRun: ({ caller, params, body, idempotency_key }) =>
      runs.say(caller, params, { kind: 'complete', ...body }, idempotency_key),
    failRun: ({ caller, params, body, idempotency_key }) =>
      runs.say(caller, params, { kind: 'fail', ...body }, idempotency_key),
    listSteps: ({ caller, params }) => runs.steps(caller, params.team_id, params.run_id),
    addStep: async ({ caller, params, body, idempotency_key }) => {
      const step = await runs.addStep(caller, params, body, idempotency_key);
      return { location: `/api/teams/${params.team_id}/runs/${params.run_id}/steps`, body: step };
    },
    startStep: ({ caller, params, idempotency_key }) =>
      runs.sayToStep(caller, params, { kind: 'start' }, idempotency_key),
    completeStep: ({ caller, params, body, idempotency_key }) =>
      runs.sayToStep(caller, params, { kind: 'complete', ...body }, idempotency_key),
    failStep: ({ caller, params, body, idempotency_key }) =>
      runs.sayToStep(caller, params, { kind: 'fail', ...body }, idempotency_key),
    requireStepInput: ({ caller, params, body, idempotency_key }) =>
      runs.sayToStep(caller, params, { kind: 'input_required', ...body }, idempotency_key),
    resumeStep: ({ caller, params, body, idempotency_key }) =>
      runs.sayToStep(caller, params, { kind: 'resume', ...body }, idempotency_key),
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
