/** What errors of a node say about a session. */
import type { Node } from '../../core/node.ts';
import { Problem, problems } from '../../core/problem.ts';

export function isUnknownSession(error: unknown): boolean {
  return hasCode(error, 'session_not_found');
}

export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Problem && codes.includes(error.code);
}

/** For stops: an agent that has ended meanwhile is stopped. */
export function ignoreNotRunning(error: unknown): void {
  if (!hasCode(error, problems.agentNotRunning().code)) throw error;
}

/** Throws if the node cannot say whether it has the session. */
export async function hasSession(node: Node, session_id: string): Promise<boolean> {
  try {
    await node.read(session_id, 'stdout', 0, 1);
    return true;
  } catch (error) {
    if (isUnknownSession(error)) return false;
    if (hasCode(error, problems.outputLost().code, problems.outputUnreadable().code)) return true;
    throw error;
  }
}
