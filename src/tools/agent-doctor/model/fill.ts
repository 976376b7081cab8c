/**
 * Creates values for a JSON schema: enough to call an agent's tool, or to answer in a requested format. Names and
 * descriptions decide what a text contains. Optional fields are omitted unless they ask for more rights.
 */
import { join } from 'node:path';
import type { JsonSchema } from './conversation.ts';

export interface Fill {
  /** Absolute, because some tools require that. */
  folder: string;
  file: string;
  content: string;
  url: string;
}

const ASKS_FOR_RIGHTS = /escalat|sandbox_permissions|justification/i;
const DEPTH_MAX = 8;

export function fill(schema: JsonSchema, values: Fill): unknown {
  return valueFor(schema, '', { values, root: schema, depth: 0 });
}

interface Scope {
  values: Fill;
  root: JsonSchema;
  depth: number;
}

function valueFor(schema_or_ref: JsonSchema, name: string, scope: Scope): unknown {
  if (scope.depth > DEPTH_MAX) return null;
  const schema = resolved(schema_or_ref, scope);
  const inner = { ...scope, depth: scope.depth + 1 };
  if ('const' in schema) return schema.const;
  if (Array.isArray(schema.enum)) return choice(schema.enum);
  const options = schema.anyOf ?? schema.oneOf;
  if (schema.type === undefined && Array.isArray(options)) return valueFor(record(options[0]), name, inner);
  switch (typeOf(schema)) {
    case 'object':
      return objectOf(schema, inner);
    case 'array':
      return listOf(schema, name, inner);
    case 'boolean':
      return ASKS_FOR_RIGHTS.test(name);
    case 'integer':
    case 'number':
      return typeof schema.minimum === 'number' ? schema.minimum : 10;
    case 'null':
      return null;
    default:
      return text(name, String(schema.description ?? ''), scope.values);
  }
}

function objectOf(schema: JsonSchema, scope: Scope): Record<string, unknown> {
  const properties = Object.entries(record(schema.properties));
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.fromEntries(
    properties
      .filter(([name]) => required.includes(name) || ASKS_FOR_RIGHTS.test(name))
      .map(([name, property]) => [name, valueFor(record(property), name, scope)]),
  );
}

/** A list of strings that is a command is executed directly, without a shell. */
function listOf(schema: JsonSchema, name: string, scope: Scope): unknown[] {
  const item = record(schema.items);
  if (typeOf(item) === 'string' && isCommand(name)) return ['sh', '-c', command(scope.values)];
  return [valueFor(item, name, scope)];
}

function text(name: string, description: string, values: Fill): string {
  if (isCommand(name)) return command(values);
  if (/dir|folder|cwd/i.test(name)) return values.folder;
  if (/^ur[li]s?$/i.test(name)) return values.url;
  if (/\bURL/.test(description)) return `Read ${values.url}`;
  if (/path|file_?name|^file$/i.test(name)) return join(values.folder, values.file);
  if (/content|text|data|body/i.test(name)) return values.content;
  if (/absolute path/i.test(description)) return join(values.folder, values.file);
  return 'a check of the agent doctor';
}

function isCommand(name: string): boolean {
  return /^(cmd|command|script|argv)$/i.test(name);
}

function command({ file, content }: Fill): string {
  return `echo '${content}' > ${file}`;
}

function choice(options: unknown[]): unknown {
  const texts = options.filter((option) => typeof option === 'string');
  return texts.find((option) => /escalat|^(write|create)$/i.test(option)) ?? options[0];
}

/** Lower case, because one API writes types in capitals. If there are several types, the first known one. */
function typeOf(schema: JsonSchema): string {
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).map((type) =>
    String(type).toLowerCase(),
  );
  if (schema.type === undefined && schema.properties !== undefined) return 'object';
  return types.find((type) => type !== 'null') ?? 'null';
}

function resolved(schema: JsonSchema, { root }: Scope): JsonSchema {
  if (typeof schema.$ref !== 'string') return schema;
  const steps = schema.$ref.replace(/^#\/?/, '').split('/').filter(Boolean);
  return steps.reduce((at, step) => record(at[step]), root);
}

function record(value: unknown): JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonSchema) : {};
}
