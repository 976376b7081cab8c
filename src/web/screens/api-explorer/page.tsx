/** The two pages that show the API explorer: `/docs` in the app, and `/api/openapi/docs` with the description embedded. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { call } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import { Screen } from '../../ui/screen.tsx';
import { Failed, QueryState } from '../../ui/states.tsx';
import type { Description } from './description.ts';
import { Explorer } from './explorer.tsx';

const descriptionQuery = queryOptions({
  queryKey: keys.openapi,
  queryFn: async () => (await call('getOpenapi')) as unknown as Description,
});

/** `/docs`: for a signed-in user. */
export function ApiDocs() {
  const read = useQuery(descriptionQuery);
  return (
    <ExplorerScreen version={read.data?.info.version}>
      <QueryState read={read} rows={12}>
        {(api) => <Explorer api={api} />}
      </QueryState>
    </ExplorerScreen>
  );
}

/**
 * `/api/openapi/docs`: the server answers it only with a token and puts the description into the page, so the page works
 * for a client that adds the token to each request and has no session in this browser.
 */
export function EmbeddedApiDocs() {
  const text = document.getElementById('description')?.textContent;
  const api = text ? (JSON.parse(text) as Description) : null;
  return (
    <div className="flex h-full flex-col">
      <ExplorerScreen version={api?.info.version}>
        {api ? (
          <Explorer api={api} />
        ) : (
          <Failed error={new Error('This page has no API description. Reload it.')} />
        )}
      </ExplorerScreen>
    </div>
  );
}

function ExplorerScreen({ version, children }: { version: string | undefined; children: ReactNode }) {
  return (
    <Screen
      title="API"
      heading={
        <>
          API <span className="font-normal text-muted text-sm">{version}</span>
        </>
      }
      className="flex flex-col overflow-hidden"
    >
      {children}
    </Screen>
  );
}
