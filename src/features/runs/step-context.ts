/** The step context: what the session of a team's agent gets in addition to the agent's own settings. */
import type { Reader } from '../../store/store.ts';
import { memberActorId } from '../actors/rules/actor.ts';
import { findAgent, findSession } from '../agents/queries/agents.ts';
import type { SessionEnvironment } from '../feature.ts';
import { assignmentsOfSession } from './queries/assignments.ts';
import { runOfNum } from './queries/runs.ts';
import { getInput } from './step-io.ts';

/** Empty for an agent without a team. An agent that speaks ACP receives its step in a prompt instead. */
export async function getStepContext(reader: Reader, session_id: string): Promise<SessionEnvironment> {
  const session = await findSession(reader, session_id);
  const agent = session && (await findAgent(reader, session.agent_id));
  const run = agent?.run_num != null ? await runOfNum(reader, agent.run_num) : undefined;
  if (!agent?.member_id || !run) return { env: {}, step_input: null };
  const env: Record<string, string> = {
    SVC_TEAM_ID: run.team_id,
    SVC_RUN_ID: run.id,
    SVC_MEMBER_ID: agent.member_id,
    SVC_ACTOR_ID: memberActorId(agent.member_id, run.team_id),
  };
  if (agent.protocol === 'acp') return { env, step_input: null };
  const work = (await assignmentsOfSession(reader, session_id)).findLast(({ ended }) => !ended)?.work;
  if (!work) return { env, step_input: null };
  if (work.kind === 'step') {
    env.SVC_STEP_KEY = work.step_key;
    env.SVC_STEP_ATTEMPT = String(work.attempt);
  }
  return { env, step_input: JSON.stringify(await getInput(reader, run, work)) };
}
