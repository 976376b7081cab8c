/**
 * The code that is generated from `src/link/proto/*.proto`. Its tools take 130 MB, so they are not among the project's
 * packages: they are installed in `scripts/protocols` when a protocol, their settings or their versions change. A digest tells
 * whether the committed code is current, so a check needs neither the tools nor a network.
 */
import { createHash } from 'node:crypto';
import { glob, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root, run } from './run.ts';

const TOOLS = join(root, 'scripts/protocols');
const BUF = 'node_modules/.bin/buf';
const PROTOCOLS = 'src/link/proto';
const DIGESTS = `${PROTOCOLS}/generated.json`;

/** Hexadecimal SHA-256 of names and contents. */
interface Digests {
  /** What the code is generated from, and by which tools. */
  sources: string;
  code: string;
}

type Files = Record<string, string>;

/** Whether the committed code is the one that was generated from the committed protocols. */
export async function protocolsAreCurrent(): Promise<boolean> {
  const text = await readFile(join(root, DIGESTS), 'utf8').catch(() => '{}');
  const { sources, code } = JSON.parse(text) as Partial<Digests>;
  return sources === digest(await readSources()) && code === digest(await readCode(join(root, PROTOCOLS)));
}

/**
 * Checks the style of the protocols, returns their code by path, and deletes that of protocols that no longer exist. Needs the npm
 * registry. Throws what a tool prints if it fails.
 */
export async function generateProtocols(): Promise<Files> {
  const out = await mkdtemp(join(tmpdir(), 'svc-generate-'));
  try {
    await use(['npm', 'ci', '--ignore-scripts']);
    await use([BUF, 'lint', `../../${PROTOCOLS}`, '--config', 'buf.yaml']);
    await use([BUF, 'generate', `../../${PROTOCOLS}`, '--config', 'buf.yaml', '--output', out]);
    const code = await readCode(out);
    for (const name of Object.keys(await readCode(join(root, PROTOCOLS)))) {
      if (!(name in code)) await rm(join(root, PROTOCOLS, name));
    }
    const digests: Digests = { sources: digest(await readSources()), code: digest(code) };
    const files = Object.entries(code).map(([name, text]) => [`${PROTOCOLS}/${name}`, text]);
    return { ...Object.fromEntries(files), [DIGESTS]: `${JSON.stringify(digests, null, 2)}\n` };
  } finally {
    await rm(out, { recursive: true });
  }
}

async function use(argv: [string, ...string[]]): Promise<void> {
  const { ok, output } = await run(argv, TOOLS);
  if (!ok) throw new Error(`${argv.join(' ')} failed:\n${output}`);
}

function readSources(): Promise<Files> {
  return read(root, [`${PROTOCOLS}/*.proto`, 'scripts/protocols/{buf.yaml,buf.gen.yaml,package-lock.json}']);
}

function readCode(folder: string): Promise<Files> {
  return read(folder, ['*.ts']);
}

async function read(folder: string, patterns: string[]): Promise<Files> {
  const files: Files = {};
  for await (const name of glob(patterns, { cwd: folder }))
    files[name] = await readFile(join(folder, name), 'utf8');
  return files;
}

function digest(files: Files): string {
  const sorted = Object.entries(files).sort(([one], [other]) => (one < other ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(sorted)).digest('hex');
}
