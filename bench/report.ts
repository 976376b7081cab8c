/** Formats figures as tables, for the terminal and for a page. */
import { loadavg } from 'node:os';
import { type Figure, isShort, type Measured, type Row, ratioOf } from './figure.ts';
import { describeMachine } from './machine.ts';
import { type Result, type Summary, summarize } from './results.ts';
import { topics } from './topics.ts';

/** The load average before the bench adds to it. */
export const load_before = loadavg()[0]!;
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

/** The page about the last whole runs. `rows`: all rows, for how they are measured. Throws if a row belongs to no topic. */
export function page(results: readonly Result[], rows: readonly Row[]): string {
  const unlisted = rows.filter(({ name }) => !topics.some((topic) => topic.rows.includes(name)));
  if (unlisted.length > 0)
    throw new Error(`add to bench/topics.ts: ${unlisted.map(({ name }) => name).join(', ')}`);
  const dates = [...new Set(results.map(({ date }) => date.slice(0, 10)))].join(' and ');
  const machines = [...new Set(results.map(({ machine }) => machine))].join('; ');
  const loads = results.map(({ load }) => load.toFixed(1)).join(', ');
  const runs = results.length === 1 ? 'one run' : `${results.length} runs`;
  return `${[
    '# Figures',
    'What svc costs, measured with the real program and real agents. `npm run bench` writes this page; do not edit it. Where the ' +
      'speed of the machine matters, the figure stands beside the limit of the same machine, or beside another program that does ' +
      'similar work, measured in the same run. Every value is the median of the last runs; the raw results are in `bench/results/`.',
    `Measured on ${dates} in ${runs}, on ${machines}. Service, agents, clients and the programs beside it share its ` +
      `processors. The load average before the runs was ${loads}: a value above about 0.5 means that other work disturbed them.`,
    ...topics.flatMap(({ title, about, rows: names }) => topicSection(title, about, names, results, rows)),
    '## How each figure is measured',
    'To measure one of them again: `npm run bench -- <name>`; `remote` selects all that start with it, and `--quick` measures little, ' +
      'to see whether it works. It needs Linux, and a machine that does nothing else at the same time.',
    ...rows.map(({ name, how }) => `**\`${name}\`.** ${how}`),
  ].join('\n\n')}\n`;
}

function topicSection(
  title: string,
  about: string,
  names: readonly string[],
  results: readonly Result[],
  rows: readonly Row[],
): string[] {
  const measured = names.map((name) => ({
    row: rows.find((row) => row.name === name)!,
    figures: summarize(results, name, (figure) => isShort(figure) === true),
  }));
  const figures = measured.flatMap((one) => one.figures);
  const causes = measured.flatMap(({ row, figures }) =>
    row.bottleneck && figures.some(({ missed }) => missed > 0)
      ? [`- \`${row.name}\`: ${row.bottleneck}`]
      : [],
  );
  return [
    `## ${title}`,
    about,
    markdownTable(['', 'svc', 'beside it', 'goal', ''], figures.map(summaryCells)),
    ...(causes.length > 0 ? [`Why goals are missed:\n\n${causes.join('\n')}`] : []),
  ];
}

function summaryCells(figure: Summary): string[] {
  const ratio = ratioOf(figure);
  const { values, missed } = figure;
  const spread = values.length > 1 ? ` (${number(Math.min(...values))}–${number(Math.max(...values))})` : '';
  return [
    figure.what,
    `${number(figure.value)} ${figure.unit}${spread}`,
    figure.limit === undefined
      ? ''
      : `${figure.limit_is}: ${number(figure.limit)} ${figure.unit}${ratio === null ? '' : ` (×${ratio.toFixed(2)})`}`,
    goalText(figure),
    figure.goal ? verdict(missed, values.length) : '',
  ];
}

function verdict(missed: number, runs: number): string {
  if (missed === 0) return 'met';
  return missed === runs ? 'missed' : `missed in ${missed} of ${runs}`;
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
    markdownTable(columns, figures.map(cells)),
    ...(row.bottleneck && figures.some((figure) => isShort(figure)) ? [`Bottleneck: ${row.bottleneck}`] : []),
  ]);
}

function markdownTable(head: readonly string[], lines: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...lines]
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

function goalText({ goal, unit, limit_is }: Figure): string {
  if (!goal) return '';
  const [sign, bound] = goal.at_least === undefined ? ['≤', goal.at_most!] : ['≥', goal.at_least];
  return goal.of === 'ratio' ? `${sign} ${bound} × ${limit_is ?? 'the limit'}` : `${sign} ${bound} ${unit}`;
}

function number(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString('en-US');
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
