/**
 * Puts an agent into the mode in which it asks before it acts. This happens once per session, right after it is opened, and
 * must be confirmed before the first prompt.
 */
import { currentMode, findModeRequest } from '../../acp/modes.ts';
import type { AcpTransaction } from '../agents/acp-transaction.ts';
import { permissionSessionModes } from '../presets/rules/preset.ts';

/** Sets the preset's mode if the agent's `permission_mode` is `ask` and the agent is not in that mode already. */
export function applyPermissionMode(transaction: AcpTransaction): void {
  const { agent, preset } = transaction;
  if (agent.permission_mode !== 'ask' || preset === null) return;
  for (const mode of permissionSessionModes(preset)) {
    const { state } = transaction;
    if (currentMode(state) === mode) continue;
    const request = findModeRequest(state, mode);
    if (request) {
      const params = { sessionId: state.acp_session_id, ...request.params };
      transaction.request(request.method, params, `${requestPrefix(transaction)}${state.asked_count + 1}`);
    } else {
      const message = `the agent does not offer the mode ${mode}, in which it would ask before it acts`;
      transaction.error('permission_mode_missing', message, { mode });
    }
  }
}

/** Whether the agent still has to confirm the mode. Until then, it gets no prompt. */
export function isApplying(session: Pick<AcpTransaction, 'state'> & OfSession): boolean {
  return session.state.asked.some(({ id }) => isPermissionMode(session, id));
}

/** Whether a request of the service sets this mode. */
export function isPermissionMode(session: OfSession, request_id: string): boolean {
  return request_id.startsWith(requestPrefix(session));
}

interface OfSession {
  session: { id: string };
}

function requestPrefix({ session }: OfSession): string {
  return `${session.id}.permission.`;
}
