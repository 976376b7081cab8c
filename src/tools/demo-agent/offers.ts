/** What the demo agent offers to clients: modes, one option, commands. */
import type {
  AvailableCommand,
  PermissionOption,
  SessionConfigOption,
  SessionMode,
} from '@agentclientprotocol/sdk';
import { limits } from '../limits.ts';

export const modeIds = ['ask', 'auto', 'plan'] as const;
export type ModeId = (typeof modeIds)[number];

const modes: Record<ModeId, Omit<SessionMode, 'id'>> = {
  ask: { name: 'Ask', description: 'Asks before it writes' },
  auto: { name: 'Auto', description: 'Writes without asking' },
  plan: { name: 'Plan', description: 'Plans only and writes nothing' },
};

export const verbosities = ['short', 'long'] as const;
export type Verbosity = (typeof verbosities)[number];

/** The id of the only option, and of the only way to sign in. */
export const VERBOSITY = 'verbosity';
export const SIGN_IN = 'demo-sign-in';

export const permissionIds = { once: 'demo-once', always: 'demo-always', reject: 'demo-reject' } as const;

export const permissionOptions: PermissionOption[] = [
  { optionId: permissionIds.once, name: 'Allow', kind: 'allow_once' },
  { optionId: permissionIds.always, name: 'Allow all in this session', kind: 'allow_always' },
  { optionId: permissionIds.reject, name: 'Do not allow', kind: 'reject_once' },
];

/** Commands with a number: its meaning, and its maximum. */
export const commands = {
  fail: { description: 'ends the turn with a refusal', hint: null, max: 0 },
  ask: { description: 'asks for permission N times in a row', hint: 'N', max: limits.demo_asks_max },
  flood: { description: 'N updates, as fast as possible', hint: 'N', max: limits.demo_updates_max },
  long: { description: 'one message of N KiB', hint: 'N', max: limits.demo_message_kib_max },
  sleep: { description: 'a pause of N seconds', hint: 'N', max: limits.demo_sleep_seconds_max },
} as const satisfies Record<string, { description: string; hint: string | null; max: number }>;
export type CommandName = keyof typeof commands;

export const availableCommands: AvailableCommand[] = Object.entries(commands).map(
  ([name, { description, hint }]) => ({ name, description, input: hint === null ? null : { hint } }),
);

export function modeState(currentModeId: ModeId) {
  return { currentModeId, availableModes: modeIds.map((id) => ({ id, ...modes[id] })) };
}

export function configOptions(currentValue: Verbosity): SessionConfigOption[] {
  return [
    {
      id: VERBOSITY,
      name: 'Verbosity',
      description: 'Length of its messages',
      type: 'select',
      currentValue,
      options: [
        { value: 'short', name: 'Short' },
        { value: 'long', name: 'Long' },
      ],
    },
  ];
}
