/** The prompts of the doctor. Real models can follow them, and the scripted one recognizes them. */
import { newSecret } from '../../base/ids.ts';

const REMEMBER = 'Please remember this word for later:';
const RECALL = 'Which word did I ask you to remember?';
/** A word may end in a hyphen, after which there is no word boundary. */
const WORD = /\bdoctor-[\w-]{12}(?![\w-])/g;

/** The two prompts that need a permission name different files, because agents protect existing files. */
export const workPrompt = (file: string): string =>
  `Write the text "hello" into a new file ${file} in the current folder, with a tool that writes files or runs commands. Then say in one sentence that it is done.`;

export const rememberPrompt = (word: string): string =>
  `${REMEMBER} ${word}. Use no tools, and answer only "OK".`;

export const recallPrompt: string = `${RECALL} Use no tools, and answer only with the word.`;

const RUN = 'Run this shell command:';
const FETCH = 'Fetch this web page with a tool that fetches:';
/** A name that never resolves (RFC 6761), so that nothing leaves the machine. */
export const FETCHED_URL = 'https://svc-doctor.invalid/';

export const runPrompt: string = `${RUN} echo hello > svc-doctor-run.txt. Then say in one sentence that it is done.`;

export const fetchPrompt: string = `${FETCH} ${FETCHED_URL}. Then say in one sentence what came back.`;

/** The action that a prompt asks for. */
export function actOf(prompt: string): 'write' | 'run' | 'fetch' {
  if (prompt.includes(RUN)) return 'run';
  return prompt.includes(FETCH) ? 'fetch' : 'write';
}

export function newWord(): string {
  return `doctor-${newSecret(9)}`;
}

/** The answer to the prompt that asks for the word, from the conversation before it; null for every other prompt. */
export function answerAboutWord(prompt: string, conversation: string): string | null {
  if (prompt.includes(RECALL)) return conversation.match(WORD)?.at(-1) ?? 'I do not know of any word.';
  return prompt.includes(REMEMBER) ? 'OK' : null;
}
