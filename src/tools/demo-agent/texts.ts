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
    `“${quote}”: I’ll look around first, then write one short note, and tell you at the end what I did.`,
    `I’ll do “${quote}” in three steps: look at what is here, write a note about it, and report back.`,
    `Understood: “${quote}”. Let me see what is in the folder before I change anything in it.`,
  ]);
  const second = rng.pick([
    'Before I write anything, I’ll show you the change and ask.',
    'You’ll see the change before I make it, and you decide.',
  ]);
  return paragraphs(`${first} ${second}`, verbosity === 'long' && aboutMyself);
}

export function thought(rng: Rng, quote: string, verbosity: Verbosity): string {
  const first = rng.pick([
    `The request is “${quote}”. I keep notes in ${NOTE}. If the file exists, I must not lose anything in it; if not, I create it.`,
    `What does “${quote}” need? A look at ${NOTE}, which may not exist yet, and one more line in it.`,
  ]);
  const second = rng.pick([
    'The change should be easy to understand at a glance, because someone has to say yes or no to it.',
    'One file and a few lines, so that there is not much to read.',
  ]);
  const more =
    'If the answer is no, I’ll say so and leave everything as it is. If the file changes while I wait, I won’t write to it.';
  return paragraphs(`${first} ${second}`, verbosity === 'long' && more);
}

/** The note about a turn, and a suggestion for the next one. */
export function note(rng: Rng, quote: string, verbosity: Verbosity): { note: string; next: string } {
  const done = rng.pick([
    `looked around and broke nothing`,
    `read what was there and added this line`,
    `took three steps and wrote down the third`,
  ]);
  const more = verbosity === 'long' ? `, without a model and without a network` : '';
  const next = rng.pick([
    'ask for something else and watch this line change',
    'choose another mode and ask again',
    'stop the service in the middle of a turn and start it again',
  ]);
  return { note: `“${quote}”: ${done}${more}.`, next };
}

export type Ending = 'written' | 'rejected' | 'planned' | { failed: string };

export function closing(rng: Rng, ending: Ending, verbosity: Verbosity): string {
  const hint = rng.pick([
    'Try `/ask 3` for three questions in a row, or `/flood 1000` for a lot of output.',
    'Try another mode: `auto` does not ask, and `plan` writes nothing.',
    'Cut the connection while I talk, and check whether any words are missing.',
  ]);
  return paragraphs(report(rng, ending), verbosity === 'long' && longReport(ending), hint);
}

export function report(rng: Rng, ending: Ending): string {
  if (typeof ending === 'object') return `I couldn’t do it: ${ending.failed}. Nothing was written.`;
  switch (ending) {
    case 'written':
      return rng.pick([
        `Done. The note is in \`${NOTE}\`. I changed nothing else.`,
        `That’s it: one more note in \`${NOTE}\`. The change that I made is the one that you saw.`,
      ]);
    case 'rejected':
      return rng.pick([
        `You didn’t allow it, so I left \`${NOTE}\` as it was. Nothing was written.`,
        `All right, I’ll leave it. Nothing was written.`,
      ]);
    case 'planned':
      return 'This is the plan, and in this mode I only plan: nothing was written. Choose `ask` or `auto` to have me do it.';
  }
}

function longReport(ending: Ending): string {
  const third =
    ending === 'written'
      ? 'the file had not changed since I showed it to you, so I wrote the note'
      : 'I wrote nothing';
  return [
    'What happened, step by step:',
    '',
    `- I read \`${NOTE}\``,
    '- I thought about it',
    `- ${third}`,
  ].join('\n');
}

const aboutMyself =
  'By the way: I’m a script. I use no model, I send nothing anywhere, and the same request gets the same answer. ' +
  'Everything around me is real: a process, its output as events, a question that waits for you, and a file on disk.';

function paragraphs(...texts: (string | false)[]): string {
  return texts.filter(Boolean).join('\n\n');
}
