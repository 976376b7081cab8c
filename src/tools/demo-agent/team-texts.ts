/** What the demo agent writes in a team. The sentences are made up, but the actions that they describe are real. */

import { limits } from '../limits.ts';
import type { TeamMail, TeamStep } from './actor.ts';
import type { Rng } from './rng.ts';
import { type Ending, quoteOf, report } from './texts.ts';

export function planText(rng: Rng, subject: string, workers: number): string {
  const whom = workers === 1 ? 'one worker' : `${workers} workers`;
  return rng.pick([
    `I’m the leader, so I plan ${subject} for ${whom}: each gets a step, and a hint by mail.`,
    `${subject} goes to ${whom}: each gets a hint by mail, then a step.`,
  ]);
}

export function hintText(rng: Rng, subject: string, from: string): string {
  return rng.pick([
    `${from} here: one short note about ${subject} is enough.`,
    `${from} here: keep to your part of ${subject}, and tell me what you did.`,
  ]);
}

export function assignmentText(handed: string[]): string {
  return handed.length === 0 ? 'There is no worker to assign this to.' : `Assigned: ${handed.join(', ')}.`;
}

export function stepOpening(rng: Rng, quote: string, hints: number): string {
  const read = hints === 0 ? '' : ` I have read ${countOf(hints, 'message')}.`;
  return rng.pick([
    `“${quote}” is my step.${read} I’ll look around first, then write one short note.`,
    `I’ll take “${quote}”.${read} I’ll write one note, then report back.`,
  ]);
}

export function stepReport(rng: Rng, ending: Ending, answer: string | null): string {
  const answered = answer === null ? '' : `The answer was “${quoteOf(answer)}”. `;
  return `${answered}${report(rng, ending)}`;
}

/** A leader's summary of all steps and messages. */
export function summary(steps: TeamStep[], mail: TeamMail[]): string {
  const completed = steps.filter(({ status }) => status === 'completed').length;
  return [
    `${completed} of ${countOf(steps.length, 'step')} completed, ${countOf(mail.length, 'message')} came in.`,
    ...steps.map(({ step_key, member_id, status }) => `- ${step_key} of ${member_id}: ${status}`),
    ...mail.map((one) => `- ${senderOf(one)} wrote: “${textOf(one.payload)}”`),
  ].join('\n');
}

export function replyText(member_id: string, payload: TeamMail['payload']): string {
  return `${member_id} has read “${textOf(payload)}”.`;
}

export function receiptText(mail: TeamMail[]): string {
  return `I have read ${mail.map((one) => `“${textOf(one.payload)}” from ${senderOf(one)}`).join(' and ')}.`;
}

function senderOf({ from_actor_id }: TeamMail): string {
  return from_actor_id.split('@')[0]!;
}

function textOf({ text, ...rest }: TeamMail['payload']): string {
  return quoteOf(typeof text === 'string' ? text : JSON.stringify(rest), limits.demo_mail_chars_max);
}

function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
