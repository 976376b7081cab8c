/**
 * A turn in a team. A leader hands out a step for each worker and, when they are over, sums up; a worker takes its step as
 * it takes any request, and reports; whoever is woken by mail answers it, but never an answer.
 */
import type { StopReason } from '@agentclientprotocol/sdk';
import { z } from 'zod';
import { isStepOver } from '../domain/run.ts';
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
  answerWords,
  heardWords,
  hintWords,
  plannedWords,
  planWords,
  stepOpening,
  stepReport,
  summary,
} from './team-words.ts';
import type { Telling } from './telling.ts';
import { quoteOf } from './words.ts';
import { plan, work } from './work.ts';

export interface Membership {
  member_id: string;
  env: Environment;
  /** Asked once in each step; null: no question. */
  question: string | null;
}

const titled = z.object({ title: z.string() });

interface Part {
  telling: Telling;
  actor: Actor;
  me: TeamMember;
  team: TeamMember[];
  prompt: string;
  question: string | null;
}

/** Null for an agent of no team. */
export function membershipOf(env: Environment, question: string | null): Membership | null {
  const { SVC_TEAM_ID, SVC_ACTOR_ID, SVC_MEMBER_ID: member_id } = env;
  return SVC_TEAM_ID && SVC_ACTOR_ID && member_id ? { member_id, env, question } : null;
}

/** Null when the team wants nothing: the prompt is somebody's. */
export async function takePart(
  telling: Telling,
  prompt: string,
  { member_id, env, question }: Membership,
): Promise<StopReason | null> {
  const actor = new Actor(telling, env);
  try {
    const team = await actor.members();
    const me = team.find((one) => one.member_id === member_id);
    if (!me) throw new ActorError(`${member_id} is not in it`);
    return await act({ telling, actor, me, team, prompt, question });
  } catch (error) {
    if (!(error instanceof ActorError)) throw error;
    await telling.say(`My team is out of reach: ${error.message}`);
    return 'refusal';
  }
}

async function act(part: Part): Promise<StopReason | null> {
  const { actor, me, prompt } = part;
  const [, step_key] = /step is "([^"]+)"/.exec(prompt) ?? [];
  const [step] = step_key === undefined ? [] : await actor.steps(step_key);
  if (step?.member_id === me.member_id && !isStepOver(step)) return takeStep(part, step);
  if (me.role === 'leader') {
    const steps = await actor.steps();
    if (steps.length === 0) return handOut(part);
    if (steps.every(isStepOver)) {
      const mail = await actor.takeMail(true);
      await part.telling.say(summary(steps, mail));
      return 'end_turn';
    }
  }
  const mail = await actor.takeMail();
  return mail.length === 0 ? null : hear(part, mail);
}

async function handOut({ telling, actor, me, team, prompt }: Part): Promise<StopReason> {
  const { chance } = telling;
  const subject = subjectOf(prompt);
  const workers = team.filter(({ role }) => role === 'worker');
  await telling.say(planWords(chance, subject, workers.length));
  const handed: string[] = [];
  for (const [at, { actor_id, member_id }] of workers.entries()) {
    const step_key = `part-${at + 1}`;
    // The hint first: the step may begin at once.
    await actor.send(actor_id, { type: 'hint', text: hintWords(chance, subject, me.member_id!) });
    await actor.addStep(step_key, member_id!, `Write a note about ${subject}, part ${at + 1}`);
    handed.push(`${step_key} for ${member_id}`);
  }
  await telling.say(plannedWords(handed));
  return 'end_turn';
}

async function takeStep(
  { telling, actor, me, team, prompt, question }: Part,
  { step_key, prompt: request }: TeamStep,
): Promise<StopReason> {
  const { chance, session } = telling;
  const hints = await actor.takeMail();
  const { asked } = session.state;
  if (question !== null && !asked.includes(step_key)) {
    // Kept first: whoever is quick to answer cancels this turn.
    await session.change({ asked: [...asked, step_key] });
    try {
      await actor.requireInput(step_key, question);
    } catch (error) {
      if (error instanceof ActorError) await session.change({ asked });
      throw error;
    }
    await telling.say(question);
    return 'end_turn';
  }
  const answer = asked.includes(step_key) ? sectionOf(prompt, 'Answer to what you asked') : null;
  const quote = quoteOf(request || step_key);
  await telling.say(stepOpening(chance, quote, hints.length));
  await plan(telling, quote, ['pending', 'pending', 'pending']);
  const ending = await work(telling, quote);
  const report = stepReport(chance, ending, answer);
  const leader = team.find(({ role }) => role === 'leader');
  if (leader && leader.actor_id !== me.actor_id) {
    await actor.send('leader', { type: 'report', text: `${step_key}: ${report}` });
  }
  const written = ending === 'written' ? 'completed' : 'pending';
  if (ending !== 'planned') await plan(telling, quote, ['completed', written, 'completed']);
  await telling.say(report);
  return 'end_turn';
}

async function hear({ telling, actor, me }: Part, mail: TeamMail[]): Promise<StopReason> {
  // What one of our kind wrote wants no answer; else two of us would answer each other for ever.
  for (const { id, from_actor_id, payload } of mail.filter(({ payload: { type } }) => type === undefined)) {
    await actor.send(from_actor_id, { type: 'answer', text: answerWords(me.member_id!, payload), to: id });
  }
  await telling.say(heardWords(mail));
  return 'end_turn';
}

/** What stands between the marks below these words of the prompt; null: they are not in it. */
function sectionOf(prompt: string, title: 'Answer to what you asked' | 'Input of the run'): string | null {
  return new RegExp(`^${title}:\\n<<<\\n(.*?)\\n>>>$`, 'ms').exec(prompt)?.[1] ?? null;
}

/** The title in the run's input. */
function subjectOf(prompt: string): string {
  const { data } = titled.safeParse(parseJson(sectionOf(prompt, 'Input of the run') ?? ''));
  return data ? `“${quoteOf(data.title)}”` : 'the work of this team';
}
