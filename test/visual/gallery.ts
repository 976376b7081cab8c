/** The page with all components, built for a test. The product does not contain it. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { build } from 'vite';
import { root } from '../architecture/source.ts';

export interface BuiltGallery {
  folder: string;
  url: string;
  /** Answers the page's requests with the files. */
  serve(page: Page): Promise<void>;
}

export async function buildGallery(): Promise<BuiltGallery> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-gallery-'));
  await build({
    configFile: join(root, 'vite.config.ts'),
    logLevel: 'error',
    publicDir: false,
    build: {
      outDir: folder,
      emptyOutDir: true,
      manifest: false,
      rolldownOptions: { input: join(root, 'src/web/gallery/index.html') },
    },
  });
  const origin = 'http://gallery.localhost';
  return {
    folder,
    url: `${origin}/gallery/index.html`,
    serve: async (page) => {
      await page.route(`${origin}/**`, (route) =>
        route.fulfill({ path: join(folder, new URL(route.request().url()).pathname) }),
      );
    },
  };
}
