/**
 * The API explorer: every operation of the API, with a form that calls it. It shows the description that the service
 * publishes, so it never differs from the API.
 */
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { ArrowLeft } from 'lucide-react';
import { useMemo, useRef, useState } from 'react';
import { useListKeys } from '../../shell/list-keys.ts';
import { cx } from '../../ui/cx.ts';
import { FilterField } from '../../ui/filter-field.tsx';
import { Page } from '../../ui/page.tsx';
import { Empty, Failed } from '../../ui/states.tsx';
import { type Description, groupOperations, listOperations, type Operation } from './description.ts';
import { OperationView, unfilled } from './operation-view.tsx';
import { Prose } from './prose.tsx';
import type { Filled } from './request.ts';

/** The page's URL holds the chosen operation and the search text. */
export function Explorer({ api }: { api: Description }) {
  const { operation: chosen_id, q = '' } = useSearch({ strict: false });
  const navigate = useNavigate();
  const operations = useMemo(() => listOperations(api), [api]);
  const chosen = operations.find(({ id }) => id === chosen_id);
  // Forms and the token live as long as this screen, and in no storage: some forms hold passwords.
  const [forms, setForms] = useState<Record<string, Filled>>({});
  const [token, setToken] = useState('');
  const list = useRef<HTMLElement>(null);
  useListKeys(list);
  return (
    <div className="flex min-h-0 flex-1">
      <nav
        ref={list}
        aria-label="Operations"
        className={cx(
          'scroll-y w-full shrink-0 flex-col gap-3 border-line p-3 md:flex md:w-80 md:border-r',
          chosen_id ? 'hidden' : 'flex',
        )}
      >
        <FilterField
          label="Find an operation"
          value={q}
          onText={(text) =>
            void navigate({
              to: '.',
              search: (before) => ({ ...before, q: text || undefined }),
              replace: true,
            })
          }
        />
        <Groups api={api} operations={operations} sought={q} chosen_id={chosen_id} />
      </nav>
      <div className={cx('scroll-y min-w-0 flex-1 md:block', !chosen_id && 'hidden')}>
        <Page className="gap-0!">
          {chosen_id && (
            <Link
              to="."
              search={{ q: q || undefined }}
              className="tap mb-2 inline-flex items-center gap-1 underline md:hidden"
            >
              <ArrowLeft aria-hidden className="size-4" /> All operations
            </Link>
          )}
          {chosen && (
            <OperationView
              key={chosen.id}
              api={api}
              operation={chosen}
              filled={forms[chosen.id] ?? unfilled(api, chosen)}
              onFill={(filled) => setForms((before) => ({ ...before, [chosen.id]: filled }))}
              token={token}
              onToken={setToken}
            />
          )}
          {chosen_id && !chosen && <Failed error={new Error('This operation does not exist.')} />}
          {!chosen_id && <Introduction api={api} />}
        </Page>
      </div>
    </div>
  );
}

function Groups({
  api,
  operations,
  sought: query,
  chosen_id,
}: {
  api: Description;
  operations: readonly Operation[];
  sought: string;
  chosen_id: string | undefined;
}) {
  const groups = groupOperations(api, operations, query);
  if (groups.length === 0) return <Empty title="No operations match this filter." />;
  return groups.map((group) => (
    <section key={group.name}>
      <h2 className="px-1 pb-1 font-medium text-muted text-sm">{group.name}</h2>
      <ul>
        {group.operations.map(({ id, method, path, spec }) => (
          <li key={id}>
            <Link
              to="."
              search={{ operation: id, q: query || undefined }}
              data-row
              aria-current={id === chosen_id ? 'page' : undefined}
              className={cx(
                'block rounded px-1 py-1 hover:bg-surface',
                id === chosen_id && 'bg-surface font-medium',
              )}
            >
              <span className="block truncate">{spec.summary}</span>
              <span className="block truncate font-mono font-normal text-muted text-xs">
                {method} {path}
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  ));
}

function Introduction({ api }: { api: Description }) {
  const paragraphs = (api.info.description ?? '').split('\n').filter((line) => line.trim() !== '');
  return (
    <article className="flex flex-col gap-3 text-prose">
      <h2 className="font-semibold text-lg">{api.info.title}</h2>
      {paragraphs.map((line) => (
        <p key={line}>
          <Prose text={line} />
        </p>
      ))}
    </article>
  );
}
