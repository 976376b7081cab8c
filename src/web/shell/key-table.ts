/** All keyboard shortcuts, for the shortcuts dialog, the settings, and sequences that start with `g`. */
import { features } from '../features.ts';
import { MOD } from '../ui/keys.ts';

export interface KeyRow {
  /** Keys pressed in order; alternatives are separate rows. */
  keys: readonly string[];
  does: string;
  /** Also works if single-key shortcuts are off. */
  always?: true;
}

const feature_jumps = features.flatMap(({ places = [] }) =>
  places.flatMap(({ jump, to, label }) => (jump === undefined ? [] : [[jump, { to, label }] as const])),
);

/** `g`, then this letter. */
export const jumps: Readonly<Record<string, { to: string; label: string }>> = {
  i: { to: '/approvals', label: 'Approvals' },
  a: { to: '/agents', label: 'Agents' },
  t: { to: '/teams', label: 'Teams' },
  r: { to: '/runs', label: 'Runs' },
  ...Object.fromEntries(feature_jumps),
  n: { to: '/nodes', label: 'Nodes' },
};

export const keyTable: readonly { title: string; rows: readonly KeyRow[] }[] = [
  {
    title: 'Everywhere',
    rows: [
      { keys: [`${MOD} K`], does: 'Search and commands', always: true },
      { keys: ['?'], does: 'Show shortcuts' },
      { keys: ['c'], does: 'New agent' },
      { keys: ['/'], does: 'Filter' },
      { keys: ['Alt 1 … 8'], does: 'Open an active agent' },
      ...Object.entries(jumps).map(([letter, { label }]) => ({
        keys: ['g', letter],
        does: `Go to ${label.toLowerCase()}`,
      })),
    ],
  },
  {
    title: 'Lists',
    rows: [
      { keys: ['j'], does: 'Next' },
      { keys: ['k'], does: 'Previous' },
      { keys: ['⏎'], does: 'Open', always: true },
      { keys: ['Esc'], does: 'Close', always: true },
    ],
  },
  {
    title: 'Focused agent in the list',
    rows: [
      { keys: ['o'], does: 'Open its output' },
      { keys: ['d'], does: 'Open its changes' },
      { keys: ['e', 'e'], does: 'Stop it, or start it if it does not run' },
    ],
  },
  {
    title: 'Agent page',
    rows: [
      { keys: ['['], does: 'Previous agent' },
      { keys: [']'], does: 'Next agent' },
      { keys: ['n'], does: 'Next question, then next failure, change or error' },
      { keys: ['p'], does: 'Previous question, failure or change' },
      { keys: ['Esc'], does: 'From the prompt to the newest question', always: true },
      { keys: ['End'], does: 'Jump to latest', always: true },
      { keys: ['⏎'], does: 'Send the prompt, unless Settings say otherwise', always: true },
      { keys: [`${MOD} ⏎`], does: 'Send the prompt', always: true },
      { keys: ['⇧ ⏎'], does: 'New line in the prompt', always: true },
      { keys: ['.', '.'], does: 'Cancel turn, or stop an agent without a conversation' },
    ],
  },
  {
    title: 'Approvals and run page',
    rows: [
      { keys: ['j'], does: 'Next open request' },
      { keys: ['k'], does: 'Previous open request' },
    ],
  },
  {
    title: 'Focused request',
    rows: [
      { keys: ['1 … 9'], does: 'Answer a permission review with that option', always: true },
      { keys: ['r'], does: 'Reject with a message', always: true },
      { keys: ['⏎'], does: 'Go to its first field', always: true },
      { keys: ['Esc'], does: 'Leave its field or message, then leave it', always: true },
    ],
  },
];
