/**
 * The mode of a session (pure). Agents report it as ACP's session mode, as a session option that replaces it, or as both. If
 * they use both, they often update only one of them.
 */
import { AGENT_METHODS, type SessionConfigOption } from '@agentclientprotocol/sdk';
import type { AcpState } from './state.ts';
import { PREVIEW_VERSION } from './v2/version.ts';

export type ModeOffers = Pick<AcpState, 'modes' | 'config_options'> &
  Partial<Pick<AcpState, 'protocol_version'>>;

export interface Setting {
  method: typeof AGENT_METHODS.session_set_mode | typeof AGENT_METHODS.session_set_config_option;
  /** Without the session id. */
  params: { modeId: string } | { configId: string; value: string };
}

/** Null if the agent reports no mode. */
export function currentMode(offers: ModeOffers): string | null {
  return offers.modes?.currentModeId ?? optionValue(offers);
}

/**
 * The request that sets a mode; null if the agent does not offer the mode. An agent that reports no modes, as some do for a
 * resumed session, may still have them. In version 2 of ACP all modes are options.
 */
export function modeSetting(offers: ModeOffers, mode: string): Setting | null {
  const option = modeOption(offers);
  const silent = offers.modes === null && option === undefined && offers.protocol_version !== PREVIEW_VERSION;
  if (silent || offers.modes?.availableModes.some(({ id }) => id === mode)) {
    return { method: AGENT_METHODS.session_set_mode, params: { modeId: mode } };
  }
  if (!option || !listValues(option).includes(mode)) return null;
  return { method: AGENT_METHODS.session_set_config_option, params: { configId: option.id, value: mode } };
}

/** Copies the last reported mode to the other place. */
export function withConsistentMode<T extends ModeOffers>(before: ModeOffers, after: T): T {
  const session = after.modes?.currentModeId ?? null;
  const option = optionValue(after);
  if (session === null || option === null || session === option) return after;
  const by_option = session === before.modes?.currentModeId && option !== optionValue(before);
  if (by_option) return { ...after, modes: { ...after.modes, currentModeId: option } };
  const config_options = after.config_options.map((option) =>
    option === modeOption(after) && listValues(option).includes(session)
      ? { ...option, currentValue: session }
      : option,
  );
  return { ...after, config_options };
}

function optionValue(offers: ModeOffers): string | null {
  const value = modeOption(offers)?.currentValue;
  return typeof value === 'string' ? value : null;
}

function modeOption({ config_options }: ModeOffers): SessionConfigOption | undefined {
  return config_options.find(({ id, category }) => category === 'mode' || id === 'mode');
}

function listValues(option: SessionConfigOption): string[] {
  if (option.type !== 'select' || !Array.isArray(option.options)) return [];
  return option.options.flatMap((option) =>
    'options' in option ? option.options.map(({ value }) => value) : option.value,
  );
}
