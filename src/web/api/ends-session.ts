/**
 * Which errors end a session. A separate file, so that pages and the stream worker load nothing else with it.
 */
import { Problem } from '../../core/problem.ts';

const ENDING = ['missing authorization token', 'invalid token'];

/** Whether an error means that the token is invalid. Other 401 errors are shown where they occur. */
export function endsSession(error: unknown): boolean {
  return error instanceof Problem && ENDING.includes(error.message);
}
