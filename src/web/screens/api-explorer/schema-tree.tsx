/** A schema as a tree: each field with its type, whether it is required, and its own fields. */

import { Disclosure } from '../../ui/disclosure.tsx';
import { type Description, resolved, type Schema, typeText } from './description.ts';
import { Prose } from './prose.tsx';

export function SchemaTree({
  api,
  schema: ref_or_schema,
  response = false,
  seen = [],
}: {
  api: Description;
  schema: Schema;
  /** Responses mark optional fields; requests mark required ones. */
  response?: boolean;
  /** The names of the enclosing types: a recursive type is shown by name only. */
  seen?: readonly string[];
}) {
  const { name, schema } = resolved(api, ref_or_schema);
  if (name && seen.includes(name)) return <code className="font-mono text-sm">{name}</code>;
  const view = { api, response, seen: name ? [...seen, name] : seen };
  const variants = schema.anyOf ?? schema.oneOf;
  if (variants) {
    return (
      <div>
        <span className="text-muted">one of</span>
        <ul className={branch}>
          {variants.map((variant, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a description does not change
            <li key={at}>
              <SchemaTree {...view} schema={variant} />
            </li>
          ))}
        </ul>
      </div>
    );
  }
  if (schema.type === 'array' && schema.items) {
    return (
      <div>
        <span className="text-muted">list of</span> <SchemaTree {...view} schema={schema.items} />
      </div>
    );
  }
  const fields = Object.entries(schema.properties ?? {});
  if (fields.length === 0)
    return <code className="break-words font-mono text-sm">{typeText(api, ref_or_schema)}</code>;
  const list = (
    <ul className={branch}>
      {fields.map(([key, field]) => (
        <Field
          key={key}
          {...view}
          name={key}
          given={field}
          required={schema.required?.includes(key) ?? false}
        />
      ))}
    </ul>
  );
  if (!name) return list;
  return (
    <Disclosure open={seen.length === 0} summary={name} summaryClass="font-mono text-sm">
      {list}
    </Disclosure>
  );
}

const branch = 'flex flex-col gap-1 border-line border-l pl-3';

function Field({
  api,
  name,
  given: ref_or_schema,
  required,
  response,
  seen,
}: {
  api: Description;
  name: string;
  given: Schema;
  required: boolean;
  response: boolean;
  seen: readonly string[];
}) {
  const { schema } = resolved(api, ref_or_schema);
  const inner = schema.type === 'array' && schema.items ? schema.items : ref_or_schema;
  const deeper = resolved(api, inner).schema;
  return (
    <li>
      <code className="font-medium font-mono text-sm">{name}</code>{' '}
      <span className="break-words text-muted text-sm">{typeText(api, ref_or_schema)}</span>
      {!response && required && <span className="text-warning text-sm"> required</span>}
      {response && !required && <span className="text-muted text-sm"> optional</span>}
      {'default' in schema && (
        <span className="text-muted text-sm"> default {JSON.stringify(schema.default)}</span>
      )}
      {ref_or_schema.description && (
        <div className="text-muted">
          <Prose text={ref_or_schema.description} />
        </div>
      )}
      {(deeper.properties || deeper.anyOf?.some((variant) => resolved(api, variant).schema.properties)) && (
        <SchemaTree api={api} schema={inner} response={response} seen={seen} />
      )}
    </li>
  );
}
