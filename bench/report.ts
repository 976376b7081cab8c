/** Formats figures as tables, for the terminal and for a page. */
import { loadavg } from 'node:os';
import { type Figure, isShort, type Measured, ratioOf } from './figure.ts';
import { describeMachine } from './machine.ts';

/** The load average before the bench adds to it. */
const load_before = loadavg()[0]!;
const columns = ['what', 'goal', 'measured', 'limit in the same run', 'share', ''];

export function table(figures: readonly Figure[]): string {
  const lines = [columns, ...figures.map(cells)];
  const widths = columns.map((_, i) => Math.max(...lines.map((line) => line[i]!.length)));
  return lines
    .map((line) =>
      line
        .map((cell, i) => cell.padEnd(widths[i]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

export function page(measured: readonly Measured[]): string {
  return `${[
    '# Figures',
    '`npm run bench` measures the real program with real agents and writes this page; do not edit it. Where the speed of the machine ' +
      'matters, a goal is a share of what the same machine can do at all, measured in the same run. To run one row: ' +
      '`npm run bench -- <row>`; all rows with a node: `npm run bench -- remote`; a short test that measures little: ' +
      '`npm run bench -- --quick`. It needs Linux, and a machine that does nothing else at the same time.',
    machine(),
    '## Goals',
    pageTable(measured.flatMap(({ figures }) => figures).filter(({ goal }) => goal)),
    ...sections(measured, '##'),
  ].join('\n\n')}\n`;
}

export function machine(): string {
  return (
    `Machine: ${describeMachine()}. Service, agents, clients and limits share its processors. ` +
    `Its load average before the run was ${load_before.toFixed(1)}: a value above about 0.5 means that other work disturbed the run.`
  );
}

export function summary(measured: readonly Measured[]): string {
  const short = measured.flatMap(({ figures }) => figures).filter((figure) => isShort(figure));
  return short.length === 0
    ? 'Every goal is met.'
    : `Missed goals: ${short.map((figure) => figure.what).join('; ')}.`;
}

/** A section for each row with its figures, with headings of this level. */
export function sections(measured: readonly Measured[], level: '##' | '###'): string[] {
  return measured.flatMap(({ row, figures }) => [
    `${level} ${row.name}`,
    row.how,
    pageTable(figures),
    ...(row.bottleneck && figures.some((figure) => isShort(figure)) ? [`Bottleneck: ${row.bottleneck}`] : []),
  ]);
}

function pageTable(figures: readonly Figure[]): string {
  return [columns, columns.map(() => '---'), ...figures.map(cells)]
    .map((line) => `| ${line.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');
}

function cells(figure: Figure): string[] {
  const ratio = ratioOf(figure);
  const short = isShort(figure);
  return [
    figure.what,
    goalText(figure),
    `${number(figure.value)} ${figure.unit}`,
    figure.limit === undefined ? '' : `${number(figure.limit)} ${figure.unit} (${figure.limit_is})`,
    ratio === null ? '' : ratio.toFixed(2),
    short === null ? '' : short ? 'missed' : 'met',
  ];
}

function goalText({ goal, unit }: Figure): string {
  if (!goal) return '';
  const [sign, bound] = goal.at_least === undefined ? ['≤', goal.at_most!] : ['≥', goal.at_least];
  return goal.of === 'ratio' ? `${sign} ${bound} × the limit` : `${sign} ${bound} ${unit}`;
}

function number(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString('en-US');
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
