/**
 * Which answers end a session. In a file of its own, for pages and for the worker of their streams; without the table of
 * all messages, which no page needs.
 */
import { Problem } from '../../core/problem.ts';

const ENDING = ['missing authorization token', 'invalid token'];

/** Whether an answer says that the token is good no more. Other 401s are said in place. */
export function endsSession(error: unknown): boolean {
  return error instanceof Problem && ENDING.includes(error.message);
}
