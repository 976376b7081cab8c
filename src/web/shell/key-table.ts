/** Every key that does something, once: the sheet and the settings are made from this table, and so are the jumps. */
import { MOD } from '../ui/keys.ts';

export interface KeyRow {
  /** Pressed one after the other; alternatives are rows of their own. */
  keys: readonly string[];
  does: string;
  /** Works with a modifier, so also where single keys are turned off. */
  always?: true;
}

/** `g`, then this letter. */
export const jumps = {
  i: { to: '/approvals', label: 'Approvals' },
  a: { to: '/agents', label: 'Agents' },
  t: { to: '/teams', label: 'Teams' },
  r: { to: '/runs', label: 'Runs' },
  k: { to: '/tasks', label: 'Tasks' },
  n: { to: '/nodes', label: 'Nodes' },
} as const;

export const keyTable: readonly { title: string; rows: readonly KeyRow[] }[] = [
  {
    title: 'Everywhere',
    rows: [
      { keys: [`${MOD} K`], does: 'Search and commands', always: true },
      { keys: ['?'], does: 'This list' },
      { keys: ['c'], does: 'New agent' },
      { keys: ['/'], does: 'Filter' },
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
    title: 'An agent',
    rows: [
      { keys: ['['], does: 'Previous agent' },
      { keys: [']'], does: 'Next agent' },
      { keys: ['n'], does: 'Next failure or change' },
      { keys: ['p'], does: 'Previous failure or change' },
      { keys: ['End'], does: 'Jump to what is live', always: true },
      { keys: [`${MOD} ⏎`], does: 'Send', always: true },
      { keys: ['.', '.'], does: 'Stop the turn' },
    ],
  },
  {
    title: 'A permission card that has the focus',
    rows: [{ keys: ['1 … 9'], does: 'Answer with that option' }],
  },
];
