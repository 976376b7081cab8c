/** Renders the first screens of the pages of the web UI, with the modules of the UI itself (`src/web/prerender/`). */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { build } from 'vite';
import { root } from './run.ts';

const SOURCE = join(root, 'src/web/prerender/prerender.tsx');
/** Pages that show data which the service puts into them. */
const WITH_DATA = /^api\./;

/** The HTML of the first screen by the name of its page. `folder` is used while this runs. */
export async function firstScreens(
  viteBuild: typeof build,
  folder: string,
  pages: Iterable<string>,
): Promise<Map<string, string>> {
  const screens = new Map<string, string>();
  if (!existsSync(SOURCE)) return screens;
  await viteBuild({
    configFile: join(root, 'vite.config.ts'),
    logLevel: 'warn',
    build: {
      ssr: SOURCE,
      outDir: folder,
      emptyOutDir: true,
      manifest: false,
      license: false,
      copyPublicDir: false,
      rolldownOptions: { output: { codeSplitting: false, entryFileNames: 'prerender.js' } },
    },
  });
  try {
    const { prerender } = await import(pathToFileURL(join(folder, 'prerender.js')).href);
    for (const page of pages) if (!WITH_DATA.test(page)) screens.set(page, await prerender(page));
  } finally {
    await rm(folder, { recursive: true });
  }
  return screens;
}
