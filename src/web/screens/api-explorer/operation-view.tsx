/** One operation: its summary, a form that calls it, its body and its responses. */

import { Disclosure } from '../../ui/disclosure.tsx';
import {
  buildExample,
  type Description,
  getBodySchema,
  type Operation,
  type Response,
  resolveResponse,
} from './description.ts';
import { Prose } from './prose.tsx';
import type { Filled } from './request.ts';
import { SchemaTree } from './schema-tree.tsx';
import { type OperationProps, TryIt } from './try-it.tsx';

export function OperationView(props: OperationProps) {
  const { api, operation } = props;
  const { spec, method, path } = operation;
  const body = getBodySchema(operation);
  return (
    <article className="flex min-w-0 flex-col gap-4">
      <header className="flex flex-col gap-1">
        <h2 className="font-semibold text-lg">{spec.summary}</h2>
        <p className="flex flex-wrap items-baseline gap-2">
          <b className="font-mono text-sm">{method}</b>
          <code className="break-all font-mono">{path}</code>
          <span className="text-muted text-sm">{operation.id}</span>
        </p>
        {spec['x-root-only'] && <p className="text-muted">Root only.</p>}
        {spec.security?.length === 0 && <p className="text-muted">No token needed.</p>}
        {spec.description && (
          <p className="text-prose">
            <Prose text={spec.description} />
          </p>
        )}
      </header>
      <TryIt {...props} />
      {body && (
        <section className="flex flex-col gap-1">
          <h3 className="font-semibold text-prose">Body</h3>
          <SchemaTree api={api} schema={body} />
        </section>
      )}
      <section className="flex flex-col gap-1">
        <h3 className="font-semibold text-prose">Responses</h3>
        {Object.entries(spec.responses).map(([status, response]) => (
          <ResponseView key={status} api={api} status={status} response={resolveResponse(api, response)} />
        ))}
      </section>
    </article>
  );
}

function ResponseView({ api, status, response }: { api: Description; status: string; response: Response }) {
  const good = status < '400';
  const [type, content] = Object.entries(response.content ?? {})[0] ?? [];
  const schema = content?.['x-data-schema'] ?? content?.schema;
  return (
    <Disclosure
      open={good}
      className="border-line border-t py-1"
      summaryClass=""
      summary={
        <>
          <b className={good ? 'text-completed' : 'text-failed'}>{status}</b>
          {good && <span className="text-muted">{type}</span>}
        </>
      }
    >
      <div className="flex flex-col gap-1 pl-4">
        {response.description && (
          <p>
            <Prose text={response.description} />
          </p>
        )}
        {good && schema && <SchemaTree api={api} schema={schema} response />}
      </div>
    </Disclosure>
  );
}

/** The initial form of an operation. */
export function unfilled(api: Description, operation: Operation): Filled {
  const body = getBodySchema(operation);
  return { values: {}, body: body ? JSON.stringify(buildExample(api, body), null, 2) : '' };
}
