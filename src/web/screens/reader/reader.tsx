/** Every operation of the API, described by the service itself and callable from here. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { ArrowLeft } from 'lucide-react';
import { useMemo, useRef, useState } from 'react';
import { call } from '../../api/client.ts';
import { useListKeys } from '../../shell/list-keys.ts';
import { cx } from '../../ui/cx.ts';
import { FilterField } from '../../ui/filter-field.tsx';
import { Screen } from '../../ui/screen.tsx';
import { Empty, Failed, Reading } from '../../ui/states.tsx';
import { type Description, groupsOf, type Operation, operationsOf } from './description.ts';
import { OperationView, unfilled } from './operation-view.tsx';
import { Prose } from './prose.tsx';
import type { Filled } from './request.ts';

const descriptionQuery = queryOptions({
  queryKey: ['openapi'],
  queryFn: async () => (await call('getOpenapi')) as unknown as Description,
});

export function Reader() {
  const read = useQuery(descriptionQuery);
  return (
    <Screen
      title="API"
      heading={
        <>
          API <span className="font-normal text-muted text-sm">{read.data?.info.version}</span>
        </>
      }
      className="flex flex-col overflow-hidden"
    >
      <Reading read={read} rows={12}>
        {(api) => <Operations api={api} />}
      </Reading>
    </Screen>
  );
}

function Operations({ api }: { api: Description }) {
  const { operation: chosen_id, q = '' } = useSearch({ from: '/app/reader' });
  const navigate = useNavigate({ from: '/reader' });
  const operations = useMemo(() => operationsOf(api), [api]);
  const chosen = operations.find(({ id }) => id === chosen_id);
  // Forms live as long as this screen, and in no storage: some hold passwords.
  const [forms, setForms] = useState<Record<string, Filled>>({});
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
            void navigate({ search: (before) => ({ ...before, q: text || undefined }), replace: true })
          }
        />
        <Groups api={api} operations={operations} sought={q} chosen_id={chosen_id} />
      </nav>
      <div className={cx('scroll-y min-w-0 flex-1 p-3 md:block md:p-4', !chosen_id && 'hidden')}>
        {chosen_id && (
          <Link
            to="/reader"
            search={{ q: q || undefined }}
            className="tap mb-2 inline-flex items-center gap-1 underline md:hidden"
          >
            <ArrowLeft aria-hidden className="size-4" /> All operations
          </Link>
        )}
        <div className="mx-auto max-w-4xl">
          {chosen && (
            <OperationView
              key={chosen.id}
              api={api}
              operation={chosen}
              filled={forms[chosen.id] ?? unfilled(api, chosen)}
              onFill={(filled) => setForms((before) => ({ ...before, [chosen.id]: filled }))}
            />
          )}
          {chosen_id && !chosen && <Failed error={new Error('There is no such operation.')} />}
          {!chosen_id && <Introduction api={api} />}
        </div>
      </div>
    </div>
  );
}

function Groups({
  api,
  operations,
  sought,
  chosen_id,
}: {
  api: Description;
  operations: readonly Operation[];
  sought: string;
  chosen_id: string | undefined;
}) {
  const groups = groupsOf(api, operations, sought);
  if (groups.length === 0) return <Empty title="No operation is called so." />;
  return groups.map((group) => (
    <section key={group.name}>
      <h2 className="px-1 pb-1 font-medium text-muted text-sm">{group.name}</h2>
      <ul>
        {group.operations.map(({ id, method, path, spec }) => (
          <li key={id}>
            <Link
              to="/reader"
              search={{ operation: id, q: sought || undefined }}
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
