/**
 * The mode of a session (pure). Agents report it as ACP's session mode, as an option of the session that takes its place, or as
 * both, and then often update only one of them.
 */
import { AGENT_METHODS, type SessionConfigOption } from '@agentclientprotocol/sdk';
import type { AcpState } from './state.ts';

export type Offers = Pick<AcpState, 'modes' | 'config_options'>;

export interface Setting {
  method: typeof AGENT_METHODS.session_set_mode | typeof AGENT_METHODS.session_set_config_option;
  /** Without the session's id. */
  params: { modeId: string } | { configId: string; value: string };
}

/** Null where the agent reports none. */
export function currentMode(offers: Offers): string | null {
  return offers.modes?.currentModeId ?? optionValue(offers);
}

/**
 * What sets a mode; null when the agent does not offer it. An agent that reports no modes at all, as some do for a session
 * that is resumed, may still have them.
 */
export function modeSetting(offers: Offers, mode: string): Setting | null {
  const option = modeOption(offers);
  const silent = offers.modes === null && option === undefined;
  if (silent || offers.modes?.availableModes.some(({ id }) => id === mode)) {
    return { method: AGENT_METHODS.session_set_mode, params: { modeId: mode } };
  }
  if (!option || !valuesOf(option).includes(mode)) return null;
  return { method: AGENT_METHODS.session_set_config_option, params: { configId: option.id, value: mode } };
}

/** `after` with the mode that was reported last in both places. */
export function withOneMode<T extends Offers>(before: Offers, after: T): T {
  const session = after.modes?.currentModeId ?? null;
  const option = optionValue(after);
  if (session === null || option === null || session === option) return after;
  const by_option = session === before.modes?.currentModeId && option !== optionValue(before);
  if (by_option) return { ...after, modes: { ...after.modes, currentModeId: option } };
  const config_options = after.config_options.map((one) =>
    one === modeOption(after) && valuesOf(one).includes(session) ? { ...one, currentValue: session } : one,
  );
  return { ...after, config_options };
}

function optionValue(offers: Offers): string | null {
  const value = modeOption(offers)?.currentValue;
  return typeof value === 'string' ? value : null;
}

function modeOption({ config_options }: Offers): SessionConfigOption | undefined {
  return config_options.find(({ id, category }) => category === 'mode' || id === 'mode');
}

function valuesOf(option: SessionConfigOption): string[] {
  if (option.type !== 'select' || !Array.isArray(option.options)) return [];
  return option.options.flatMap((one) =>
    'options' in one ? one.options.map(({ value }) => value) : one.value,
  );
}
