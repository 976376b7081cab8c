/** The reference of all limits, from the `limits.ts` of each module. */
import { glob, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { root } from '../run.ts';
import { code, page, table } from './page.ts';

const ABOUT = `Limits keep memory, time and disk space bounded. Each module declares its own in a file \`limits.ts\`, and \`src/base/limits.ts\` has those that
several modules share. To change a limit that is the default of a setting, see [configuration](configuration.md). The other limits are part of
the program.`;

/** Each limit has a comment of one line above it, which gives its reason. */
const DECLARED = /^ {2}\/\*\* (.+) \*\/\n {2}(\w+):/gm;

export async function limitsPage(): Promise<string> {
  const files: string[] = [];
  for await (const file of glob('src/**/limits.ts', { cwd: root })) files.push(file);
  const parts = await Promise.all(files.sort().map(partOf));
  return page('Limits', 'This page lists the limits of svc.', ['src/**/limits.ts'], [ABOUT, ...parts.flat()]);
}

async function partOf(file: string): Promise<string[]> {
  const path = join(root, file);
  const { limits } = (await import(path)) as { limits: Record<string, number | object> };
  const reasons = new Map(
    [...(await readFile(path, 'utf8')).matchAll(DECLARED)].map(([, reason, name]) => [name!, reason!]),
  );
  const rows = Object.entries(limits).map(([name, value]) => {
    const reason = reasons.get(name);
    if (reason === undefined) throw new Error(`${file}: say in a comment of one line what ${name} is for`);
    return [code(name), shown(name, value), reason];
  });
  return [`## ${dirname(file)}`, table(['Limit', 'Value', 'Reason'], rows)];
}

const sizes = { GiB: 1024 ** 3, MiB: 1024 ** 2, KiB: 1024, bytes: 1 };
const times = { d: 86_400_000, h: 3_600_000, min: 60_000, s: 1_000, ms: 1 };

/** The value with its unit, which the name of the limit ends with. */
function shown(name: string, value: unknown): string {
  if (Array.isArray(value)) return value.map((one) => shown(name, one)).join(', ');
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value)
      .map(([key, one]) => `${key.replaceAll('_', ' ')} ${one.toLocaleString('en')}`)
      .join(', ');
  }
  if (typeof value !== 'number') return String(value);
  const unit = name.replace(/_(min|max)$/, '').split('_');
  if (unit.includes('bytes')) return inUnit(value, sizes);
  if (unit.includes('ms')) return inUnit(value, times);
  if (unit.at(-1) === 's' || unit.includes('seconds')) return inUnit(value * 1000, times);
  if (unit.at(-1) === 'share') return `${value * 100} %`;
  const ending = ['chars', 'days', 'kib', 'mib'].find((one) => unit.includes(one));
  const text = value.toLocaleString('en');
  return ending === undefined ? text : `${text} ${{ kib: 'KiB', mib: 'MiB' }[ending] ?? ending}`;
}

/** In the largest unit of which the value is a whole number, or else in the smallest one. */
function inUnit(value: number, units: Record<string, number>): string {
  const [name, size] =
    Object.entries(units).find(([, each]) => value % each === 0) ?? Object.entries(units).at(-1)!;
  return `${(value / size).toLocaleString('en')} ${name}`;
}
