/** What makes an agent ask before it acts: set for each session once it is open, and confirmed before the first prompt. */
import { currentMode, modeSetting } from '../../acp/modes.ts';
import { permissionSessionModes } from '../../domain/preset.ts';
import type { Exchange } from './exchange.ts';

/** Sends what the preset declares, where the agent's `permission_mode` is `ask` and it is not in that mode already. */
export function applyPermissionMode(exchange: Exchange): void {
  const { agent, preset } = exchange;
  if (agent.permission_mode !== 'ask' || preset === null) return;
  for (const mode of permissionSessionModes(preset)) {
    const { state } = exchange;
    if (currentMode(state) === mode) continue;
    const setting = modeSetting(state, mode);
    if (setting) {
      const params = { sessionId: state.acp_session_id, ...setting.params };
      exchange.request(setting.method, params, `${prefixOf(exchange)}${state.asked_count + 1}`);
    } else {
      const told = `the agent does not offer the mode ${mode}, in which it would ask before it acts`;
      exchange.error('permission_mode_missing', told, { mode });
    }
  }
}

/** Whether the agent still has to confirm it: it gets no prompt before. */
export function isApplying(exchange: Exchange): boolean {
  return exchange.state.asked.some(({ id }) => isPermissionMode(exchange, id));
}

/** Whether a request of ours is one of these. */
export function isPermissionMode(exchange: Exchange, request_id: string): boolean {
  return request_id.startsWith(prefixOf(exchange));
}

function prefixOf({ session }: Exchange): string {
  return `${session.id}.permission.`;
}
