/** Reads what the user has entered for a command. Pure. */

export interface CommandInput {
  output?: unknown;
  error_text?: string;
  input?: unknown;
}

/** `resume`: the answer to a question. */
export type ValueCommand = 'complete' | 'fail' | 'resume';

type Read = { input: CommandInput; fault: null } | { input: null; fault: string };

/**
 * The input of the command. An empty answer or error text is a fault, because it is more likely a slip than an answer, and the
 * question would be closed. As JSON, `null` is an answer.
 */
export function readCommandInput(command: ValueCommand, text: string, is_json: boolean): Read {
  const is_empty = text.trim() === '';
  if (command === 'fail') {
    return is_empty ? faulty('Enter the error text') : { input: { error_text: text }, fault: null };
  }
  if (command === 'resume' && is_empty) return faulty('Enter an answer');
  try {
    const value = is_empty ? null : is_json ? (JSON.parse(text) as unknown) : text;
    return { input: command === 'complete' ? { output: value } : { input: value }, fault: null };
  } catch (error) {
    return faulty((error as Error).message);
  }
}

function faulty(fault: string): Read {
  return { input: null, fault };
}
