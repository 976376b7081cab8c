/**
 * What an agent reports about itself and its session (pure): plan, commands, modes, options, usage, title. The last report
 * wins.
 */
import type { AvailableCommand, SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk';
import { asNumber, type Fields, truncateText } from '../json.ts';
import {
  type AgentInfo,
  type Cost,
  type PlanEntry,
  type ReportedSettings,
  readAgentInfo,
  readPlanEntry,
  readSettings,
} from '../settings.ts';
import type { Update } from '../updates.ts';
import { withV1Options } from '../v2/reading.ts';
import { jsonLength, shortOrNull, shortText, shortTexts } from './bounded.ts';
import { bounds } from './bounds.ts';

const CURRENCY_CHARS = 8;

export interface Plan {
  readonly entries: readonly PlanEntry[];
  readonly done: number;
  readonly total: number;
}

export interface Usage {
  readonly used: number;
  readonly size: number;
  readonly cost: Cost | null;
}

export interface Settings {
  readonly plan: Plan | null;
  readonly commands: readonly AvailableCommand[];
  readonly modes: SessionModeState | null;
  /** In the agent's order. */
  readonly config_options: readonly SessionConfigOption[];
  readonly usage: Usage | null;
  readonly title: string | null;
  readonly agent: AgentInfo | null;
  /** The negotiated ACP version. */
  readonly protocol_version: number | null;
}

export const emptySettings: Settings = {
  plan: null,
  commands: [],
  modes: null,
  config_options: [],
  usage: null,
  title: null,
  agent: null,
  protocol_version: null,
};

/** The settings after an update; null if the update is about anything else. */
export function applyUpdate(before: Settings, update: Update): Settings | null {
  switch (update.kind) {
    case 'plan':
      return { ...before, plan: summarizePlan(update.entries) };
    case 'commands':
      return { ...before, commands: readCommands(update.commands) };
    case 'mode':
      return withMode(before, update.mode_id);
    case 'settings':
      return { ...before, ...configured(update.settings) };
    case 'title':
      return update.title === undefined ? before : { ...before, title: shortOrNull(update.title) };
    case 'usage': {
      const { used, size, cost } = update;
      return used === null || size === null
        ? before
        : { ...before, usage: { used, size, cost: shortCost(cost) } };
    }
    default:
      return null;
  }
}

/** The settings after the answer to a request of the service. `mode_id`: the mode that the request set. */
export function applyResponse(
  before: Settings,
  method: string,
  mode_id: string | null,
  result: Fields,
): Settings {
  switch (method) {
    case 'initialize': {
      const { agentInfo, info, protocolVersion } = result;
      const agent = readAgentInfo(agentInfo ?? info);
      return { ...before, agent: agent && shortTexts(agent), protocol_version: asNumber(protocolVersion) };
    }
    case 'session/new':
    case 'session/load':
    case 'session/resume':
    case 'session/set_config_option':
      return { ...before, ...configured(readSettings(withV1Options(result))) };
    case 'session/set_mode':
      return withMode(before, mode_id);
    default:
      return before;
  }
}

function summarizePlan(reported: readonly Fields[]): Plan {
  const entries = reported.slice(0, bounds.parts).map((item) => shortTexts(readPlanEntry(item)));
  const done = entries.filter(({ status }) => status === 'completed').length;
  return { entries, done, total: entries.length };
}

function readCommands(commands: readonly Fields[]): AvailableCommand[] {
  return takeFitting(commands).filter(
    ({ name }) => typeof name === 'string' && name !== '',
  ) as unknown as AvailableCommand[];
}

function withMode(before: Settings, mode_id: string | null): Settings {
  if (mode_id === null) return before;
  const currentModeId = shortText(mode_id);
  return { ...before, modes: { availableModes: [], ...before.modes, currentModeId } };
}

function configured({ modes, config_options, commands }: ReportedSettings): Partial<Settings> {
  return {
    ...(modes && { modes: readModes(modes.current_id, modes.available) }),
    ...(commands && { commands: readCommands(commands) }),
    ...(config_options && {
      config_options: takeFitting(config_options).filter(isNamed) as unknown as SessionConfigOption[],
    }),
  };
}

function readModes(current_id: string, available: readonly Fields[]): SessionModeState {
  const modes = takeFitting(available).filter(isNamed) as unknown as SessionModeState['availableModes'];
  return { currentModeId: shortText(current_id), availableModes: modes };
}

function isNamed({ id, name }: Fields): boolean {
  return typeof id === 'string' && typeof name === 'string';
}

function shortCost(cost: Cost | null): Cost | null {
  return cost && { ...cost, currency: truncateText(cost.currency, CURRENCY_CHARS) };
}

/** The agent's own objects, as many as a transcript keeps. */
function takeFitting(objects: readonly Fields[]): Fields[] {
  let remaining_chars: number = bounds.text_chars;
  return objects.slice(0, bounds.parts).filter((object) => {
    remaining_chars -= jsonLength(object, remaining_chars);
    return remaining_chars >= 0;
  });
}
