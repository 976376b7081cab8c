/** Answers questions about a folder together, because each answer costs several processes of git. */

import { problems } from '../../core/problem.ts';
import { limits } from '../limits.ts';

/** Equal questions share the answer of the first one while it is in progress. */
export function sharing(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const working = new Map<string, Promise<unknown>>();
  return <T>(key: string, work: () => Promise<T>) => {
    const under_way = working.get(key);
    if (under_way !== undefined) return under_way as Promise<T>;
    const result = work().finally(() => working.delete(key));
    working.set(key, result);
    return result;
  };
}

interface Gathered<T> {
  questions: Set<string>;
  answers: Promise<ReadonlyMap<string, T>>;
}

/**
 * Collects different questions about the same folder while an earlier one is being answered, and asks them together. `ask`
 * gets a function that ends the collection and returns at most `limits.found_questions_max` questions; it returns their
 * answers in that order. One question more throws `too_many_folder_jobs`.
 */
export function gathering<T>(
  ask: (folder: string, owner: string | undefined, questions: () => string[]) => Promise<T[]>,
): (folder: string, owner: string | undefined, question: string) => Promise<T> {
  const open = new Map<string, Gathered<T>>();
  const last = new Map<string, Promise<unknown>>();

  const gather = (folder: string, owner: string | undefined): Gathered<T> => {
    const questions = new Set<string>();
    const close = () => {
      if (open.get(folder) === gathered) open.delete(folder);
      return [...questions];
    };
    const answer = async () => {
      const answers = await ask(folder, owner, close).finally(close);
      // A worker may return too few answers.
      if (answers.length < questions.size) throw problems.nodeUnreachable();
      return new Map([...questions].map((question, at) => [question, answers[at]!]));
    };
    const before = last.get(folder) ?? Promise.resolve();
    const answers = before.then(answer, answer).finally(() => {
      if (last.get(folder) === answers) last.delete(folder);
    });
    const gathered = { questions, answers };
    open.set(folder, gathered);
    last.set(folder, answers);
    return gathered;
  };

  return async (folder, owner, question) => {
    const { questions, answers } = open.get(folder) ?? gather(folder, owner);
    if (questions.size >= limits.found_questions_max && !questions.has(question)) {
      throw problems.tooManyFolderJobs();
    }
    questions.add(question);
    return (await answers).get(question)!;
  };
}
