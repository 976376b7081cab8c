/** What Vite says of the files that it made: which came of which source of `src/web`, and what each loads before it runs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Chunk {
  file: string;
  imports?: string[];
}
export type Manifest = Record<string, Chunk>;

/** Of a folder that the web UI was built into. */
export function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, '.vite/manifest.json'), 'utf8'));
}

/** The scripts that these sources became, with all that they load before they run; from the folder. */
export function scriptsOf(manifest: Manifest, sources: readonly string[]): string[] {
  const seen = new Set<string>();
  const visit = (source: string) => {
    if (seen.has(source)) return;
    seen.add(source);
    const chunk = manifest[source];
    if (chunk === undefined) throw new Error(`${source} is no chunk of the web UI`);
    chunk.imports?.forEach(visit);
  };
  sources.forEach(visit);
  return [...seen].map((source) => manifest[source]!.file);
}
