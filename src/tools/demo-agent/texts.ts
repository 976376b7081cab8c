/**
 * What the demo agent writes. The sentences depend on the request and the seed, and say that no model is involved.
 * The process, the stream, the question and the file are real.
 */
import { limits } from '../limits.ts';
import { NOTE } from './note.ts';
import type { Verbosity } from './offers.ts';
import type { Rng } from './rng.ts';

/** The first line of a prompt that is not empty, short enough to be quoted. */
export function quoteOf(prompt: string, max: number = limits.demo_quote_chars_max): string {
  const line = prompt.split(/[\r\n]+/).find((text) => text.trim() !== '') ?? 'nothing in particular';
  const chars = [...line.replace(/[\p{Cc}\p{Cf}]/gu, ' ').trim()];
  return chars.length > max ? `${chars.slice(0, max - 1).join('')}…` : chars.join('');
}

export function opening(rng: Rng, quote: string, verbosity: Verbosity): string {
  const first = rng.pick([
    `“${quote}”: I will look first, then write one short note, and tell you in the end what I did.`,
    `I will take “${quote}” in three steps: look at what is here, write a note about it, and report.`,
    `Understood: “${quote}”. Let me see what is in the folder before I change anything in it.`,
  ]);
  const second = rng.pick([
    'Before I write I will show you the change and ask.',
    'You will see the change before it is made, and decide.',
  ]);
  return paragraphs(`${first} ${second}`, verbosity === 'long' && aboutMyself);
}

export function thought(rng: Rng, quote: string, verbosity: Verbosity): string {
  const first = rng.pick([
    `The request is “${quote}”. I keep notes in ${NOTE}. If it is there already, nothing in it may get lost; if not, I begin it.`,
    `What does “${quote}” need? A look at ${NOTE}, which may or may not be there, and one more line in it.`,
  ]);
  const second = rng.pick([
    'The change should be small enough to be understood at a glance, because somebody has to say yes or no to it.',
    'One file and a few lines, so that you do not have to read much.',
  ]);
  const more =
    'If the answer is no, I say so and leave everything as it is. If the file changes while I wait, I write nothing.';
  return paragraphs(`${first} ${second}`, verbosity === 'long' && more);
}

/** What is written about a turn, and what it suggests to do next. */
export function note(rng: Rng, quote: string, verbosity: Verbosity): { note: string; next: string } {
  const done = rng.pick([
    `looked around and found nothing that had to be broken`,
    `read what was there and added this line`,
    `took three steps, and wrote down the third`,
  ]);
  const more = verbosity === 'long' ? `, without a model and without a network` : '';
  const next = rng.pick([
    'ask for something else, and watch this line change',
    'choose another mode, and ask again',
    'stop the service in the middle of a turn, and start it again',
  ]);
  return { note: `“${quote}”: ${done}${more}.`, next };
}

export type Ending = 'written' | 'rejected' | 'planned' | { failed: string };

export function closing(rng: Rng, ending: Ending, verbosity: Verbosity): string {
  const hint = rng.pick([
    'Try `/ask 3` for three questions in a row, or `/flood 1000` for a lot of output.',
    'Try another mode: `auto` does not ask, `plan` writes nothing.',
    'Cut the connection while I talk, and see whether a word is missing.',
  ]);
  return paragraphs(report(rng, ending), verbosity === 'long' && longReport(ending), hint);
}

export function report(rng: Rng, ending: Ending): string {
  if (typeof ending === 'object') return `I could not do it: ${ending.failed}. Nothing was written.`;
  switch (ending) {
    case 'written':
      return rng.pick([
        `Done. The note is in \`${NOTE}\`, and nothing else was touched.`,
        `That is it: one more note in \`${NOTE}\`. The change that you saw is the change that was made.`,
      ]);
    case 'rejected':
      return rng.pick([
        `You did not allow it, so \`${NOTE}\` stays as it was. Nothing was written.`,
        `All right, I leave it. Nothing was written.`,
      ]);
    case 'planned':
      return 'This is the plan, and in this mode it stays one: nothing was written. Choose `ask` or `auto` to have it done.';
  }
}

function longReport(ending: Ending): string {
  const third =
    ending === 'written' ? 'the file was still what I had shown, so I wrote it' : 'I wrote nothing';
  return [
    'What happened, step by step:',
    '',
    `- I read \`${NOTE}\``,
    '- I thought about it',
    `- ${third}`,
  ].join('\n');
}

const aboutMyself =
  'By the way: I am a script. No model is asked, nothing is sent anywhere, and the same request gets the same words. ' +
  'What you see around me is real: a process, its output as events, a question that waits for you, and a file on a disk.';

function paragraphs(...texts: (string | false)[]): string {
  return texts.filter(Boolean).join('\n\n');
}
