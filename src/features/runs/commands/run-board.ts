/**
 * The board of a run (pure): a heading, a table of its steps, and questions that must be answered. It fits on the screen. If
 * there are too many steps, it shows those that are active or need attention, and counts the others.
 */
import stringWidth from 'fast-string-width';
import { cut, pad } from '../../../cli/output.ts';
import { printable } from '../../../cli/terminal.ts';
import {
  answerCommands,
  formatTitle,
  joined,
  type Line,
  paint,
} from '../../conversations/commands/acp-lines.ts';
import type { ReviewRecord } from '../../reviews/commands/review-lines.ts';
import type { Run, Step, StepStatus } from '../rules/run.ts';
import { formatCounts, formatElapsed, listQuestions, statusStyles, stepColumns } from './run-lines.ts';

export interface Board {
  /** `<team>#<number>`. */
  title: string;
  run: Run;
  /** Steps by key, in display order. */
  steps: ReadonlyMap<string, Step>;
  /** Pending reviews of its agents. */
  reviews: readonly ReviewRecord[];
  /** Shown in the last line. */
  note: string | null;
}

export interface Screen {
  rows: number;
  columns: number;
  colored: boolean;
}

const KEY_WIDTH_MAX = 40;
const CELL_CHARS_MAX = 200;

/** Returns at most as many lines as the screen has rows. No line is wider than the screen. */
export function boardLines(board: Board, screen: Screen, now_ms: number): string[] {
  const { title, run, steps, reviews, note } = board;
  const head: Line[] = [
    {
      text: joined(title, run.id, run.status, formatElapsed(run, now_ms), `attempt ${run.attempt}`),
      style: 'bold',
    },
    { text: steps.size === 0 ? 'no steps' : `${steps.size} steps: ${formatCounts(steps.values())}` },
    ...(run.attention === null ? [] : [{ text: printable(run.attention), style: 'yellow' as const }]),
  ];
  const waiting = [
    ...listQuestions(run, steps).flatMap(({ lines }) => lines),
    ...reviews.flatMap(reviewSummary),
    ...(run.status === 'completed' && run.output !== null ? [outputLine(run.output)] : []),
    ...(note === null ? [] : [{ text: note, style: 'yellow' as const }]),
  ];
  // The table keeps at least half of the screen.
  const most = Math.max(2, Math.floor(screen.rows / 2));
  const foot = waiting.length > most ? waiting.slice(-most) : waiting;
  const rows_left = Math.max(0, screen.rows - head.length - foot.length);
  return [...head, ...tableLines(board, rows_left, now_ms), ...foot]
    .slice(0, screen.rows)
    .map(({ text, style }) => paint(cut(text, screen.columns), style, screen.colored));
}

/** A review in two lines: the action for which the agent needs permission, and the commands that answer it. */
export function reviewSummary({ id, tool_call, options }: ReviewRecord): Line[] {
  return [
    { text: `review ${joined(id, formatTitle(tool_call))}`, style: 'yellow' },
    {
      text: `  ${answerCommands(id, options).slice(0, 2).join('   ')}   svc reviews show ${id}`,
      style: 'dim',
    },
  ];
}

function outputLine(output: unknown): Line {
  return { text: `output ${printable(JSON.stringify(output).slice(0, CELL_CHARS_MAX))}` };
}

function tableLines({ run, steps }: Board, rows_left: number, now_ms: number): Line[] {
  if (steps.size === 0 || rows_left < 2) return [];
  const all = [...steps.values()];
  const shown = all.length < rows_left ? all : mostRelevant(all, rows_left - 2);
  const columns = stepColumns(run, steps, now_ms);
  const rows = shown.map((step) =>
    columns.map(({ value }) => printable(String(value(step) ?? '').slice(0, CELL_CHARS_MAX))),
  );
  const widths = columns.map(({ title }, at) =>
    Math.min(KEY_WIDTH_MAX, Math.max(title.length, ...rows.map((row) => stringWidth(row[at]!)))),
  );
  const line = (cells: string[]) =>
    cells.map((cell, at) => (at === cells.length - 1 ? cell : pad(cut(cell, widths[at]!), widths[at]!)));
  const heading = line(columns.map(({ title }) => title)).join('  ');
  const table: Line[] = [{ text: heading, style: 'dim' }];
  for (const [at, row] of rows.entries()) {
    const style = statusStyles[shown[at]!.status];
    table.push({ text: line(row).join('  ').trimEnd(), ...(style && { style }) });
  }
  if (shown.length === all.length) return table;
  const visible_steps = new Set(shown);
  const rest = all.filter((step) => !visible_steps.has(step));
  return [...table, { text: `… ${rest.length} more: ${formatCounts(rest)}`, style: 'dim' }];
}

const ranks: Record<StepStatus, number> = {
  input_required: 0,
  running: 1,
  failed: 2,
  ready: 3,
  pending: 4,
  completed: 5,
  cancelled: 6,
  skipped: 7,
};

/** The `count` most relevant steps in display order; among finished steps, the latest ones. */
function mostRelevant(steps: readonly Step[], count: number): Step[] {
  const ranked = steps.map((step, at) => ({ step, at }));
  ranked.sort(
    (item, other) =>
      ranks[item.step.status] - ranks[other.step.status] ||
      endTime(other.step) - endTime(item.step) ||
      item.at - other.at,
  );
  const chosen = ranked.slice(0, Math.max(0, count));
  return chosen.sort((item, other) => item.at - other.at).map(({ step }) => step);
}

function endTime({ ended_at }: Step): number {
  return ended_at === null ? 0 : Date.parse(ended_at);
}
