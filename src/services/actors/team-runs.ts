/** Runs and steps as the actor surface asks for them, by the rules that people's words follow too. */
import { usernameOf } from '../../domain/actor.ts';
import type { Run, Step } from '../../domain/run.ts';
import { agentsOfSteps, findRun, findStep, type RunRow, stepsOf, toRun, toStep } from '../../store/runs.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { teamOfNum } from '../../store/teams.ts';
import { rosterOf } from '../teams/roster.ts';
import { addStep, type Hearing, type Speaker, sayToRun, sayToStep } from '../teams/words.ts';
import type { ActorRuns } from './deps.ts';

export function actorRuns(hearing: Hearing): ActorRuns {
  const say = (tx: Tx, run: RunRow, said: Parameters<typeof sayToRun>[3], by: string): Run => {
    sayToRun(hearing, tx, run, said, speakerOf(tx, by));
    return toRun(findRun(tx, run.id)!);
  };
  const sayOfStep = (
    tx: Tx,
    run: RunRow,
    step_key: string,
    said: Parameters<typeof sayToStep>[4],
    by: string,
  ): Step => {
    sayToStep(hearing, tx, run, step_key, said, speakerOf(tx, by));
    return stepOf(tx, run, step_key);
  };
  return {
    members: (reader, run) => rosterOf(reader, teamOfNum(reader, run.team_num)!, run),
    steps: (reader, run) => {
      const agents = agentsOfSteps(reader, run);
      return stepsOf(reader, run.num).map((row) => toStep(row, run.id, agents.get(row.step_key) ?? null));
    },
    addStep: (tx, run, asked, by) => {
      const usual = { when: 'on_success', timeout_seconds: null, max_attempts: 1 } as const;
      addStep(hearing, tx, run, { ...asked, ...usual }, speakerOf(tx, by));
      return stepOf(tx, run, asked.step_key);
    },
    completeStep: (tx, run, step_key, output, by) =>
      sayOfStep(tx, run, step_key, { kind: 'complete', output }, by),
    failStep: (tx, run, step_key, error_text, by) =>
      sayOfStep(tx, run, step_key, { kind: 'fail', error_text }, by),
    requireInput: (tx, run, step_key, reason, by) =>
      sayOfStep(tx, run, step_key, { kind: 'input_required', reason }, by),
    completeRun: (tx, run, output, by) => say(tx, run, { kind: 'complete', output }, by),
    failRun: (tx, run, error_text, by) => say(tx, run, { kind: 'fail', error_text }, by),
  };
}

/** The user behind a human; nobody behind a member. */
function speakerOf(reader: Reader, actor_id: string): Speaker {
  const query = reader.sql.selectFrom('users').select('id');
  const user = reader.get(query.where('username', '=', usernameOf(actor_id) ?? ''));
  return { user_id: user?.id ?? null, ip: null, actor_id };
}

function stepOf(reader: Reader, run: RunRow, step_key: string): Step {
  const agent_id = agentsOfSteps(reader, run, [step_key]).get(step_key);
  return toStep(findStep(reader, run.num, step_key)!, run.id, agent_id ?? null);
}
