/**
 * The API description: `/api/openapi.json` for programs, and `/api/openapi/docs` for people. The latter is the page of the
 * web UI with the description embedded, so a client that adds its token to every request needs no browser session. The API
 * explorer of the web UI shows it. At `/docs`, the same explorer reads `/api/openapi.json` with the user's session.
 */
import { openapi } from '../api/openapi.ts';
import type { Handlers } from './call.ts';
import { HTML, NOT_BUILT, readPage, WEB_FOLDER } from './pages.ts';

/**
 * Handlers of the description, for `mountRoutes`. The description is built at the first request, because building it takes a
 * tenth of the startup time. `web` is the folder of the built web UI; without it, the page answers 503.
 */
export function metaHandlers(web = WEB_FOLDER): Pick<Handlers, 'getOpenapi' | 'getDocs'> {
  let description: ReturnType<typeof openapi> | undefined;
  const described = () => {
    description ??= openapi();
    return description;
  };
  return {
    getOpenapi: described,
    getDocs: async (call) => {
      const html = await readPage(web, '/api/openapi/docs');
      const page = html === null ? NOT_BUILT : withDescription(html.toString('utf8'), described());
      const response = call.hijack();
      const length = Buffer.byteLength(page);
      response.writeHead(html === null ? 503 : 200, { 'content-type': HTML, 'content-length': length });
      response.end(page);
      return undefined;
    },
  };
}

/**
 * Embeds the description as a data block and not as a script, so the policy against inline scripts allows it. Its text is
 * escaped so that it cannot end the block.
 */
function withDescription(html: string, description: unknown): string {
  const json = JSON.stringify(description).replaceAll('<', '\\u003c');
  return html.replace(
    '</body>',
    () => `  <script type="application/json" id="description">${json}</script>\n  </body>`,
  );
}
