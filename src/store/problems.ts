/** What clients see if the database fails. */
import { Problem, problems, storeProblem } from '../core/problem.ts';

/** The database does not answer. Nothing is known about whether the data was stored. */
export function storageFailed(): Problem {
  return storeProblem('storage_failed', 'storage does not answer');
}

export function storageDamaged(): Problem {
  return storeProblem('storage_damaged', 'storage is damaged');
}

/** For the database; `problems.diskSpace` is also the answer of a node. */
export function noSpace(): Problem {
  const { code, message } = problems.diskSpace();
  return storeProblem(code, message);
}

/** Whether the database does not answer. Damage may affect only some of its rows, and lack of space only what needs more. */
export function isOutage(error: unknown): boolean {
  return error instanceof Problem && error.is_of_store && error.code === storageFailed().code;
}
