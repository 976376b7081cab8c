/**
 * A turn in a team. A leader assigns a step to each worker and sums up when all steps are over. A worker handles its
 * step like any request, and reports the result. An agent that is woken by mail replies to it, but never replies to a
 * reply.
 */
import type { StopReason } from '@agentclientprotocol/sdk';
import { z } from 'zod';
import { isStepOver } from '../../features/runs/rules/run.ts';
import {
  Actor,
  ActorError,
  type Environment,
  parseJson,
  type TeamMail,
  type TeamMember,
  type TeamStep,
} from './actor.ts';
import {
  assignmentText,
  hintText,
  planText,
  receiptText,
  replyText,
  stepOpening,
  stepReport,
  summary,
} from './team-texts.ts';
import { quoteOf } from './texts.ts';
import type { TurnOutput } from './turn-output.ts';
import { plan, work } from './work.ts';

export interface Membership {
  member_id: string;
  env: Environment;
  /** Asked once per step; null for no question. */
  question: string | null;
}

const titled = z.object({ title: z.string() });

interface TeamTurn {
  output: TurnOutput;
  actor: Actor;
  me: TeamMember;
  team: TeamMember[];
  prompt: string;
  question: string | null;
}

/** Null for an agent without a team. */
export function membershipOf(env: Environment, question: string | null): Membership | null {
  const { SVC_TEAM_ID, SVC_ACTOR_ID, SVC_MEMBER_ID: member_id } = env;
  return SVC_TEAM_ID && SVC_ACTOR_ID && member_id ? { member_id, env, question } : null;
}

/** Null if the prompt is not from the team. */
export async function takeTeamTurn(
  output: TurnOutput,
  prompt: string,
  { member_id, env, question }: Membership,
): Promise<StopReason | null> {
  const actor = new Actor(output, env);
  try {
    const team = await actor.members();
    const me = team.find((one) => one.member_id === member_id);
    if (!me) throw new ActorError(`${member_id} is not in it`);
    return await runTeamTurn({ output, actor, me, team, prompt, question });
  } catch (error) {
    if (!(error instanceof ActorError)) throw error;
    await output.say(`I cannot reach my team: ${error.message}`);
    return 'refusal';
  }
}

async function runTeamTurn(turn: TeamTurn): Promise<StopReason | null> {
  const { actor, me, prompt } = turn;
  const [, step_key] = /step is "([^"]+)"/.exec(prompt) ?? [];
  const [step] = step_key === undefined ? [] : await actor.steps(step_key);
  if (step?.member_id === me.member_id && !isStepOver(step)) return takeStep(turn, step);
  if (me.role === 'leader') {
    const steps = await actor.steps();
    if (steps.length === 0) return assignSteps(turn);
    if (steps.every(isStepOver)) {
      const mail = await actor.takeMail(true);
      await turn.output.say(summary(steps, mail));
      return 'end_turn';
    }
  }
  const mail = await actor.takeMail();
  return mail.length === 0 ? null : readMail(turn, mail);
}

async function assignSteps({ output, actor, me, team, prompt }: TeamTurn): Promise<StopReason> {
  const { rng } = output;
  const subject = subjectOf(prompt);
  const workers = team.filter(({ role }) => role === 'worker');
  await output.say(planText(rng, subject, workers.length));
  const assignments: string[] = [];
  for (const [at, { actor_id, member_id }] of workers.entries()) {
    const step_key = `part-${at + 1}`;
    // The hint is sent first, because the step may start at once.
    await actor.send(actor_id, { type: 'hint', text: hintText(rng, subject, me.member_id!) });
    await actor.addStep(step_key, member_id!, `Write a note about ${subject}, part ${at + 1}`);
    assignments.push(`${step_key} for ${member_id}`);
  }
  await output.say(assignmentText(assignments));
  return 'end_turn';
}

async function takeStep(
  { output, actor, me, team, prompt, question }: TeamTurn,
  { step_key, prompt: request }: TeamStep,
): Promise<StopReason> {
  const { rng, session } = output;
  const hints = await actor.takeMail();
  const { asked } = session.state;
  if (question !== null && !asked.includes(step_key)) {
    // Stored first, because a quick answer cancels this turn.
    await session.change({ asked: [...asked, step_key] });
    try {
      await actor.requireInput(step_key, question);
    } catch (error) {
      if (error instanceof ActorError) await session.change({ asked });
      throw error;
    }
    await output.say(question);
    return 'end_turn';
  }
  const answer = asked.includes(step_key) ? sectionOf(prompt, 'Answer to your question') : null;
  const quote = quoteOf(request || step_key);
  await output.say(stepOpening(rng, quote, hints.length));
  await plan(output, quote, ['pending', 'pending', 'pending']);
  const ending = await work(output, quote);
  const report = stepReport(rng, ending, answer);
  const leader = team.find(({ role }) => role === 'leader');
  if (leader && leader.actor_id !== me.actor_id) {
    await actor.send('leader', { type: 'report', text: `${step_key}: ${report}` });
  }
  const written = ending === 'written' ? 'completed' : 'pending';
  if (ending !== 'planned') await plan(output, quote, ['completed', written, 'completed']);
  await output.say(report);
  return 'end_turn';
}

async function readMail({ output, actor, me }: TeamTurn, mail: TeamMail[]): Promise<StopReason> {
  // Mail from another demo agent needs no answer; otherwise two of them would answer each other endlessly.
  for (const { id, from_actor_id, payload } of mail.filter(({ payload: { type } }) => type === undefined)) {
    await actor.send(from_actor_id, { type: 'answer', text: replyText(me.member_id!, payload), to: id });
  }
  await output.say(receiptText(mail));
  return 'end_turn';
}

/** The text between `<<<` and `>>>` below this title in the prompt; null if the title is missing. */
function sectionOf(prompt: string, title: 'Answer to your question' | 'Input of the run'): string | null {
  const begin = new RegExp(`^${title}:\\n<<<\\n`, 'm').exec(prompt);
  const section = begin && prompt.slice(begin.index + begin[0].length);
  const end = section?.search(/\n>>>$/m) ?? -1;
  return end < 0 ? null : section!.slice(0, end);
}

/** The title in the run's input. */
function subjectOf(prompt: string): string {
  const { data } = titled.safeParse(parseJson(sectionOf(prompt, 'Input of the run') ?? ''));
  return data ? `“${quoteOf(data.title)}”` : 'the work of this team';
}
