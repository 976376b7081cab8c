/** The parts of the OpenAPI description that the explorer uses, and functions to query them. Pure. */

export interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  description?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  examples?: unknown[];
  minimum?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  additionalProperties?: Schema | boolean;
}

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  description?: string;
  schema: Schema;
}

interface Content {
  schema?: Schema;
  /** The schema of one `data:` line of an event stream. */
  'x-data-schema'?: Schema;
}

export interface Response {
  $ref?: string;
  description?: string;
  content?: Record<string, Content>;
}

interface Spec {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  parameters?: (Parameter | { $ref: string })[];
  requestBody?: { content: Record<string, Content> };
  responses: Record<string, Response>;
  security?: unknown[];
  'x-root-only'?: boolean;
}

export interface Description {
  info: { title: string; version: string; description?: string };
  tags: { name: string }[];
  paths: Record<string, Record<string, Spec>>;
  components: {
    schemas: Record<string, Schema>;
    responses: Record<string, Response>;
    parameters?: Record<string, Parameter>;
  };
}

export interface Operation {
  id: string;
  method: string;
  path: string;
  /** With its parameters instead of references to them. */
  spec: Omit<Spec, 'parameters'> & { parameters: Parameter[] };
}

const methods = ['get', 'post', 'put', 'patch', 'delete'];

export function listOperations({ paths, components }: Description): Operation[] {
  const resolveParameter = (ref_or_schema: Parameter | { $ref: string }) => {
    if (!('$ref' in ref_or_schema)) return [ref_or_schema];
    const shared = components.parameters?.[ref_or_schema.$ref.split('/').at(-1)!];
    return shared ? [shared] : [];
  };
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => methods.includes(method))
      .map(([method, spec]) => ({
        id: spec.operationId,
        method: method.toUpperCase(),
        path,
        spec: { ...spec, parameters: (spec.parameters ?? []).flatMap(resolveParameter) },
      })),
  );
}

/** Groups operations by tag, in the description's order. Keeps those that contain every word of `query`. */
export function groupOperations(
  { tags }: Description,
  operations: readonly Operation[],
  query: string,
): { name: string; operations: Operation[] }[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = operations.filter(({ id, method, path, spec }) => {
    const text = `${id} ${method} ${path} ${spec.summary}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return tags
    .map(({ name }) => ({ name, operations: found.filter(({ spec }) => spec.tags[0] === name) }))
    .filter((group) => group.operations.length > 0);
}

/** Resolves a reference to its schema and name; any other schema has no name. */
export function resolved(api: Description, schema: Schema): { name: string | null; schema: Schema } {
  const name = schema.$ref?.split('/').at(-1);
  return name ? { name, schema: api.components.schemas[name] ?? {} } : { name: null, schema };
}

export function resolveResponse(api: Description, response: Response): Response {
  const name = response.$ref?.split('/').at(-1);
  return name ? (api.components.responses[name] ?? {}) : response;
}

export function getBodySchema({ spec }: Operation): Schema | undefined {
  return spec.requestBody?.content['application/json']?.schema;
}

/** A short description of a type. */
export function typeText(api: Description, ref_or_schema: Schema): string {
  const { name, schema } = resolved(api, ref_or_schema);
  if (name) return name;
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if ('const' in schema) return JSON.stringify(schema.const);
  const variants = schema.anyOf ?? schema.oneOf;
  if (variants) return variants.map((variant) => typeText(api, variant)).join(' | ');
  if (schema.type === 'array') return `list of ${typeText(api, schema.items ?? {})}`;
  if (typeof schema.additionalProperties === 'object' && !schema.properties) {
    return `map of ${typeText(api, schema.additionalProperties)}`;
  }
  const type = [schema.type ?? 'anything'].flat().join(' | ');
  return schema.format ? `${type}, ${schema.format}` : type;
}

/** An initial value: the schema's own example or default, else its required fields. */
export function buildExample(api: Description, ref_or_schema: Schema, depth = 0): unknown {
  const { schema } = resolved(api, ref_or_schema);
  if (schema.examples && schema.examples.length > 0) return schema.examples[0];
  if ('default' in schema) return schema.default;
  if ('const' in schema) return schema.const;
  if (schema.enum) return schema.enum[0];
  const variant = (schema.anyOf ?? schema.oneOf)?.[0];
  if (variant) return buildExample(api, variant, depth + 1);
  switch ([schema.type].flat()[0]) {
    case 'object': {
      // A type may contain itself.
      if (depth > 8) return {};
      const entries = (schema.required ?? []).map((key) => [
        key,
        buildExample(api, schema.properties?.[key] ?? {}, depth + 1),
      ]);
      return Object.fromEntries(entries);
    }
    case 'array':
      return [];
    case 'integer':
    case 'number':
      return schema.minimum ?? 0;
    case 'boolean':
      return false;
    case 'null':
      return null;
    default:
      return '';
  }
}
