/**
 * A run on a screen (pure): its head, a table of its steps, and what waits for somebody. It has as many lines as the screen
 * takes: of a run with more steps those stay that move or need a look, and the rest is counted.
 */
import stringWidth from 'string-width';
import type { Run, Step, StepStatus } from '../domain/run.ts';
import { answerCommands, joined, type Line, paint, titleOf } from './acp-lines.ts';
import { pad } from './output.ts';
import type { ReviewRecord } from './review-lines.ts';
import { countsOf, questionsOf, statusLooks, stepColumns, timeOf } from './run-lines.ts';
import { visible } from './terminal.ts';

export interface Board {
  /** How people call the run. */
  title: string;
  run: Run;
  /** By key, in the order in which they are shown. */
  steps: ReadonlyMap<string, Step>;
  /** Of its agents, waiting. */
  reviews: readonly ReviewRecord[];
  /** Last of all. */
  note: string | null;
}

export interface Screen {
  rows: number;
  columns: number;
  coloured: boolean;
}

const KEY_WIDTH_MAX = 40;
const CELL_CHARS_MAX = 200;

/** Never more lines than the screen has rows, none longer than it is wide. */
export function boardLines(board: Board, screen: Screen, now_ms: number): string[] {
  const { title, run, steps, reviews, note } = board;
  const head: Line[] = [
    { text: joined(title, run.id, run.status, timeOf(run, now_ms), `attempt ${run.attempt}`), look: 'bold' },
    { text: steps.size === 0 ? 'no steps' : `${steps.size} steps: ${countsOf(steps.values())}` },
    ...(run.attention === null ? [] : [{ text: visible(run.attention), look: 'yellow' as const }]),
  ];
  const waiting = [
    ...questionsOf(run, steps).flatMap(({ lines }) => lines),
    ...reviews.flatMap(reviewTold),
    ...(run.status === 'completed' && run.output !== null ? [outputLine(run.output)] : []),
    ...(note === null ? [] : [{ text: note, look: 'yellow' as const }]),
  ];
  // The table keeps half of the screen, however much waits.
  const most = Math.max(2, Math.floor(screen.rows / 2));
  const foot = waiting.length > most ? waiting.slice(-most) : waiting;
  const room = Math.max(0, screen.rows - head.length - foot.length);
  return [...head, ...tableLines(board, room, now_ms), ...foot]
    .slice(0, screen.rows)
    .map(({ text, look }) => paint(cut(text, screen.columns), look, screen.coloured));
}

/** A review in two lines: who wants what, and the plainest answer. */
export function reviewTold({ id, tool_call, options }: ReviewRecord): Line[] {
  return [
    { text: `review ${joined(id, titleOf(tool_call))}`, look: 'yellow' },
    {
      text: `  ${answerCommands(id, options).slice(0, 2).join('   ')}   svc reviews show ${id}`,
      look: 'dim',
    },
  ];
}

function outputLine(output: unknown): Line {
  return { text: `output ${visible(JSON.stringify(output).slice(0, CELL_CHARS_MAX))}` };
}

function tableLines({ run, steps }: Board, room: number, now_ms: number): Line[] {
  if (steps.size === 0 || room < 2) return [];
  const all = [...steps.values()];
  const shown = all.length < room ? all : mostTelling(all, room - 2);
  const columns = stepColumns(run, steps, now_ms);
  const rows = shown.map((step) =>
    columns.map(({ value }) => visible(String(value(step) ?? '').slice(0, CELL_CHARS_MAX))),
  );
  const widths = columns.map(({ title }, at) =>
    Math.min(KEY_WIDTH_MAX, Math.max(title.length, ...rows.map((row) => stringWidth(row[at]!)))),
  );
  const line = (cells: string[]) =>
    cells.map((cell, at) => (at === cells.length - 1 ? cell : pad(cut(cell, widths[at]!), widths[at]!)));
  const heading = line(columns.map(({ title }) => title)).join('  ');
  const table: Line[] = [{ text: heading, look: 'dim' }];
  for (const [at, row] of rows.entries()) {
    const look = statusLooks[shown[at]!.status];
    table.push({ text: line(row).join('  ').trimEnd(), ...(look && { look }) });
  }
  if (shown.length === all.length) return table;
  const kept = new Set(shown);
  const rest = all.filter((step) => !kept.has(step));
  return [...table, { text: `… ${rest.length} more: ${countsOf(rest)}`, look: 'dim' }];
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

/** So many of them, in their order: of those that are over the latest. */
function mostTelling(steps: readonly Step[], count: number): Step[] {
  const ranked = steps.map((step, at) => ({ step, at }));
  ranked.sort(
    (one, other) =>
      ranks[one.step.status] - ranks[other.step.status] ||
      endOf(other.step) - endOf(one.step) ||
      one.at - other.at,
  );
  const chosen = ranked.slice(0, Math.max(0, count));
  return chosen.sort((one, other) => one.at - other.at).map(({ step }) => step);
}

function endOf({ ended_at }: Step): number {
  return ended_at === null ? 0 : Date.parse(ended_at);
}

/** As much of a line as is so wide. */
function cut(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  let kept = '';
  let left = width - 1;
  for (const char of text) {
    left -= stringWidth(char);
    if (left < 0) break;
    kept += char;
  }
  return `${kept}…`;
}
