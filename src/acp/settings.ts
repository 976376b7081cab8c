/**
 * The parts of an agent's reports about itself and its session that the plane, the CLI and the web UI read in the same way.
 */
import { asNumber, asRecord, asRecords, asString, type Fields, isRecord } from './json.ts';

export interface AgentInfo {
  name: string;
  title: string | null;
  version: string | null;
}

export interface PlanEntry {
  content: string;
  /** ACP's `PlanEntryStatus`, or any other value that the agent sent. */
  status: string;
  priority: string | null;
}

export interface Cost {
  amount: number;
  currency: string;
}

/** The settings in the result of opening a session or setting an option. Null: the result does not mention them. */
export interface ReportedSettings {
  modes: { current_id: string; available: readonly Fields[] } | null;
  config_options: readonly Fields[] | null;
  commands: readonly Fields[] | null;
}

/** Null if the agent sent no information about itself. */
export function readAgentInfo(info: unknown): AgentInfo | null {
  if (!isRecord(info)) return null;
  return { name: asString(info.name) ?? '', title: asString(info.title), version: asString(info.version) };
}

export function readPlanEntry({ content, status, priority }: Fields): PlanEntry {
  return {
    content: asString(content) ?? '',
    status: asString(status) ?? 'pending',
    priority: asString(priority),
  };
}

/** Null if there is no amount. */
export function readCost(cost: unknown): Cost | null {
  const { amount, currency } = asRecord(cost);
  const number = asNumber(amount);
  return number === null ? null : { amount: number, currency: asString(currency) ?? '' };
}

export function readSettings(result: unknown): ReportedSettings {
  const { modes, configOptions, availableCommands } = asRecord(result);
  const { currentModeId, availableModes } = asRecord(modes);
  const current_id = asString(currentModeId);
  return {
    modes: current_id === null ? null : { current_id, available: asRecords(availableModes) },
    config_options: Array.isArray(configOptions) ? asRecords(configOptions) : null,
    commands: Array.isArray(availableCommands) ? asRecords(availableCommands) : null,
  };
}
