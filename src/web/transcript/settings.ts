/** What an agent says of itself and of its session (pure): plan, commands, modes, options, usage, title. The last word counts. */
import type { AvailableCommand, SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk';
import { bounds } from './bounds.ts';
import { type Fields, fieldsOf, isRecord, numberOf, recordsOf, stringOf, weigh, wordOf } from './reading.ts';

export interface PlanEntry {
  readonly content: string;
  /** ACP's `PlanEntryStatus`, or whatever else the agent said. */
  readonly status: string;
  readonly priority: string | null;
}

export interface Plan {
  readonly entries: readonly PlanEntry[];
  readonly done: number;
  readonly total: number;
}

export interface Usage {
  readonly used: number;
  readonly size: number;
  readonly cost: { readonly amount: number; readonly currency: string } | null;
}

export interface Settings {
  readonly plan: Plan | null;
  readonly commands: readonly AvailableCommand[];
  readonly modes: SessionModeState | null;
  /** In the agent's order. */
  readonly config_options: readonly SessionConfigOption[];
  readonly usage: Usage | null;
  readonly title: string | null;
  readonly agent: {
    readonly name: string;
    readonly title: string | null;
    readonly version: string | null;
  } | null;
}

export const noSettings: Settings = {
  plan: null,
  commands: [],
  modes: null,
  config_options: [],
  usage: null,
  title: null,
  agent: null,
};

/** After a `session/update`; null for a kind that is about something else. */
export function afterUpdate(before: Settings, update: Fields): Settings | null {
  switch (update.sessionUpdate) {
    case 'plan':
      return { ...before, plan: planOf(update.entries) };
    case 'available_commands_update':
      return { ...before, commands: commandsOf(update.availableCommands) };
    case 'current_mode_update':
      return withMode(before, wordOf(update.currentModeId));
    case 'config_option_update':
      return { ...before, ...configured(update) };
    case 'session_info_update':
      return update.title === undefined ? before : { ...before, title: wordOf(update.title) };
    case 'usage_update': {
      const [used, size] = [numberOf(update.used), numberOf(update.size)];
      return used === null || size === null
        ? before
        : { ...before, usage: { used, size, cost: costOf(update.cost) } };
    }
    default:
      return null;
  }
}

/** After the answer to a request of ours; `value`: what was asked for. */
export function afterAnswer(
  before: Settings,
  method: string,
  value: string | null,
  result: Fields,
): Settings {
  switch (method) {
    case 'initialize':
      return { ...before, agent: agentOf(result.agentInfo) };
    case 'session/new':
    case 'session/load':
    case 'session/resume':
    case 'session/set_config_option':
      return { ...before, ...configured(result) };
    case 'session/set_mode':
      return withMode(before, value);
    default:
      return before;
  }
}

function planOf(entries: unknown): Plan {
  const told = recordsOf(entries).map(({ content, status, priority }) => ({
    content: wordOf(content) ?? '',
    status: wordOf(status) ?? 'pending',
    priority: wordOf(priority),
  }));
  return {
    entries: told,
    done: told.filter(({ status }) => status === 'completed').length,
    total: told.length,
  };
}

function commandsOf(told: unknown): AvailableCommand[] {
  return fitting(told).filter(
    ({ name }) => typeof name === 'string' && name !== '',
  ) as unknown as AvailableCommand[];
}

function withMode(before: Settings, currentModeId: string | null): Settings {
  if (currentModeId === null) return before;
  return { ...before, modes: { availableModes: [], ...before.modes, currentModeId } };
}

function configured({ modes, configOptions }: Fields): Partial<Settings> {
  const current = wordOf(fieldsOf(modes).currentModeId);
  return {
    ...(current !== null && { modes: modesOf(fieldsOf(modes), current) }),
    ...(Array.isArray(configOptions) && {
      config_options: fitting(configOptions).filter(
        ({ id, name }) => typeof id === 'string' && typeof name === 'string',
      ) as unknown as SessionConfigOption[],
    }),
  };
}

function modesOf({ availableModes }: Fields, currentModeId: string): SessionModeState {
  const available = fitting(availableModes).filter(
    ({ id, name }) => typeof id === 'string' && typeof name === 'string',
  );
  return { currentModeId, availableModes: available as unknown as SessionModeState['availableModes'] };
}

function agentOf(told: unknown): Settings['agent'] {
  if (!isRecord(told)) return null;
  return { name: wordOf(told.name) ?? '', title: wordOf(told.title), version: wordOf(told.version) };
}

function costOf(told: unknown): Usage['cost'] {
  const { amount, currency } = fieldsOf(told);
  const number = numberOf(amount);
  return number === null ? null : { amount: number, currency: stringOf(currency)?.slice(0, 8) ?? '' };
}

/** The agent's own objects, as many as a page holds. */
function fitting(told: unknown): Fields[] {
  let room: number = bounds.text_chars;
  return recordsOf(told).filter((one) => {
    room -= weigh(one, room);
    return room >= 0;
  });
}
