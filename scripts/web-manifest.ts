/** Reads Vite's manifest: which script each source of `src/web` became, and what each script loads before it runs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Chunk {
  file: string;
  imports?: string[];
}
export type Manifest = Record<string, Chunk>;

/** Reads the manifest of a build folder. */
export function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, '.vite/manifest.json'), 'utf8'));
}

/** The scripts of these sources, with everything that they load before they run; relative to the folder. */
export function scriptsOf(manifest: Manifest, sources: readonly string[]): string[] {
  const seen = new Set<string>();
  const visit = (source: string) => {
    if (seen.has(source)) return;
    seen.add(source);
    const chunk = manifest[source];
    if (chunk === undefined) throw new Error(`${source} is not a chunk of the web UI`);
    chunk.imports?.forEach(visit);
  };
  sources.forEach(visit);
  return [...seen].map((source) => manifest[source]!.file);
}
