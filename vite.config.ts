/** The web UI: `src/web` becomes `dist/web`, with hashed names. `npm run dev:web` serves it alone, calls passed on to a service. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

const root = fileURLToPath(new URL('src/web', import.meta.url));
const { version } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
const service = process.env.SVC_URL ?? 'http://127.0.0.1:8080';

/**
 * What several screens need goes into few files, each as large as a screen that is loaded first can bear: a browser without HTTP/2
 * fetches six files at a time, and on a slow network each costs as much time as fifty kilobytes. Earlier ones take first.
 */
const parts = [
  { name: 'early', test: /src\/web\/(early|api\/session-key|shell\/(theme|first-screen))\.ts/ },
  { name: 'first', tags: ['$initial' as const] },
  // What the way in needs besides.
  { name: 'first', test: /ui\/((field|button)\.tsx|mark)|shell\/title|entry\/door|useMutation/ },
  {
    name: 'frame',
    test: /src\/web\/(shell|ui\/(?!dialog|forget|menu|needs|device-name|drafts)|streams|api|live\/streams|screens\/agents\/(facts|order|actions))|csp-(provider|context)|node_modules\/(lucide-react|@tanstack(?!.*(virtual|infinite|queries|useInfinite|useQueries)))/,
    minShareCount: 2,
  },
  // Dialogs and menus, which open after the first paint.
  {
    name: 'overlays',
    test: /src\/web\/ui\/(dialog|forget|menu|needs|device-name|drafts)|node_modules\/(@base-ui|@floating-ui)/,
    minShareCount: 2,
  },
  // What long lists need.
  { name: 'lists', test: /@tanstack\/.*(virtual|infinite|queries|useInfinite|useQueries)/, minShareCount: 2 },
  { name: 'log', test: /src\/acp\/|src\/web\/(transcript\/(?!blocks)|live\/)/, minShareCount: 2 },
  {
    name: 'prose',
    test: /src\/web\/(prose\/|reviews\/|transcript\/blocks)|node_modules\/(micromark|mdast|remark|react-markdown|remend|unified|hast|unist|vfile)/,
    minShareCount: 2,
  },
];

/** Packages whose file for browsers asks the document, which workers have none of. */
const withoutDocument: Plugin = {
  name: 'without-document',
  enforce: 'pre',
  resolveId: (id) =>
    id === 'decode-named-character-reference' ? fileURLToPath(import.meta.resolve(id)) : null,
};

/**
 * The entry point imports `early.ts`, so the page would only preload it. Instead it runs it at once, before the larger files
 * arrive.
 */
const runEarly: Plugin = {
  name: 'run-early',
  transformIndexHtml: {
    order: 'post',
    handler: (html) => {
      const preload = /\n *<link rel="modulepreload" crossorigin href="(\/assets\/early-[\w-]+\.js)">/;
      const src = preload.exec(html)?.[1];
      if (src === undefined) return html;
      const script = `<script type="module" async blocking="render" fetchpriority="high" crossorigin src="${src}"></script>`;
      return html.replace(preload, '').replace('<script', () => `${script}\n    <script`);
    },
  },
};

export default defineConfig({
  root,
  cacheDir: fileURLToPath(new URL('.vite', import.meta.url)),
  define: { __SVC_VERSION__: JSON.stringify(version) },
  plugins: [react(), tailwindcss(), runEarly],
  build: {
    outDir: fileURLToPath(new URL('dist/web', import.meta.url)),
    emptyOutDir: true,
    // Which file came of which source: for the sizes that `npm run check` looks at.
    manifest: true,
    // The licenses of the libraries in the UI, next to it.
    license: { fileName: 'licenses.md' },
    target: 'es2023',
    // The policy forbids scripts in the page; a font or an image is a file with a name of its own.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 600,
    rolldownOptions: { output: { codeSplitting: { groups: parts } } },
  },
  worker: { format: 'es', plugins: () => [withoutDocument] },
  server: {
    host: '127.0.0.1',
    proxy: {
      // Sources of this room lie below /api too, in development.
      '^/api/(?![\\w-]+[.]tsx?($|[?]))': {
        target: service,
        changeOrigin: true,
        // The service knows only its own origin.
        configure: (proxy) => proxy.on('proxyReq', (request) => request.removeHeader('origin')),
      },
    },
  },
});
