/**
 * The mode of a session (pure). Agents report it as ACP's session mode, as a session option that replaces it, or as both. If
 * they use both, they often update only one of them.
 */
import { AGENT_METHODS, type SessionConfigOption } from '@agentclientprotocol/sdk';
import type { AcpState } from './state.ts';
import { PREVIEW_VERSION } from './v2/version.ts';

export type ModeState = Pick<AcpState, 'modes' | 'config_options'> &
  Partial<Pick<AcpState, 'protocol_version'>>;

export interface ModeRequest {
  method: typeof AGENT_METHODS.session_set_mode | typeof AGENT_METHODS.session_set_config_option;
  /** Without the session id. */
  params: { modeId: string } | { configId: string; value: string };
}

/** Null if the agent reports no mode. */
export function currentMode(state: ModeState): string | null {
  return state.modes?.currentModeId ?? optionValue(state);
}

/**
 * The request that sets a mode; null if the agent does not offer the mode. An agent that reports no modes, as some do for a
 * resumed session, may still have them. In version 2 of ACP all modes are options.
 */
export function findModeRequest(state: ModeState, mode: string): ModeRequest | null {
  const option = modeOption(state);
  const silent = state.modes === null && option === undefined && state.protocol_version !== PREVIEW_VERSION;
  if (silent || state.modes?.availableModes.some(({ id }) => id === mode)) {
    return { method: AGENT_METHODS.session_set_mode, params: { modeId: mode } };
  }
  if (!option || !listValues(option).includes(mode)) return null;
  return { method: AGENT_METHODS.session_set_config_option, params: { configId: option.id, value: mode } };
}

/** If session mode and mode option disagree, copies the one that just changed to the other. */
export function withConsistentMode<T extends ModeState>(before: ModeState, after: T): T {
  const session_mode = after.modes?.currentModeId ?? null;
  const option_mode = optionValue(after);
  if (session_mode === null || option_mode === null || session_mode === option_mode) return after;
  const option_changed = session_mode === before.modes?.currentModeId && option_mode !== optionValue(before);
  if (option_changed) return { ...after, modes: { ...after.modes, currentModeId: option_mode } };
  const config_options = after.config_options.map((option) =>
    option === modeOption(after) && listValues(option).includes(session_mode)
      ? { ...option, currentValue: session_mode }
      : option,
  );
  return { ...after, config_options };
}

function optionValue(state: ModeState): string | null {
  const value = modeOption(state)?.currentValue;
  return typeof value === 'string' ? value : null;
}

function modeOption({ config_options }: ModeState): SessionConfigOption | undefined {
  return config_options.find(({ id, category }) => category === 'mode' || id === 'mode');
}

function listValues(option: SessionConfigOption): string[] {
  if (option.type !== 'select' || !Array.isArray(option.options)) return [];
  return option.options.flatMap((option) =>
    'options' in option ? option.options.map(({ value }) => value) : option.value,
  );
}
