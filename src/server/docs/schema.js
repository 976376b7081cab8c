/** Shows JSON schemas as nested lists, and builds example values from them. */
import { h, prose } from './dom.js';

/** Resolves a reference to its schema and name. */
export function resolve(api, schema) {
  const name = /^#\/components\/schemas\/(.+)$/.exec(schema?.$ref ?? '')?.[1];
  return name ? { name, schema: api.components.schemas[name] ?? {} } : { name: null, schema: schema ?? {} };
}

/** @param {{ answer?: boolean, seen?: string[] }} [view] in an answer fields are there unless they are optional */
export function showSchema(api, given, { answer = false, seen = [] } = {}) {
  const { name, schema } = resolve(api, given);
  if (name && seen.includes(name)) return h('code', {}, name);
  const view = { answer, seen: name ? [...seen, name] : seen };
  if (schema.anyOf) {
    const variants = schema.anyOf.map((variant) => h('li', {}, showSchema(api, variant, view)));
    return h('div', {}, h('span', { class: 'quiet' }, 'one of'), h('ul', { class: 'schema' }, ...variants));
  }
  if (schema.type === 'array') {
    return h('div', {}, h('span', { class: 'quiet' }, 'array of '), showSchema(api, schema.items, view));
  }
  const properties = Object.entries(schema.properties ?? {});
  if (properties.length === 0) return h('code', {}, typeText(api, given));
  const fields = properties.map(([key, value]) =>
    showField(api, key, value, schema.required?.includes(key), view),
  );
  const list = h('ul', { class: 'schema' }, ...fields);
  if (!name) return list;
  return h('details', { open: seen.length === 0 }, h('summary', {}, h('code', {}, name)), list);
}

function showField(api, key, given, required, view) {
  const { schema } = resolve(api, given);
  const inner = schema.type === 'array' ? resolve(api, schema.items).schema : schema;
  return h(
    'li',
    {},
    h('code', {}, key),
    ' ',
    h('span', { class: 'quiet' }, typeText(api, given)),
    view.answer
      ? !required && h('span', { class: 'quiet' }, ' optional')
      : required && h('span', { class: 'required' }, ' required'),
    'default' in schema && h('span', { class: 'quiet' }, ` default ${JSON.stringify(schema.default)}`),
    given.description && h('div', {}, prose(given.description)),
    inner.properties && showSchema(api, schema.type === 'array' ? schema.items : given, view),
  );
}

/** A short description of a type. */
export function typeText(api, given) {
  const { name, schema } = resolve(api, given);
  if (name) return name;
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.anyOf) return schema.anyOf.map((variant) => typeText(api, variant)).join(' | ');
  if (schema.type === 'array') return `${typeText(api, schema.items)}[]`;
  const type = Array.isArray(schema.type) ? schema.type.join(' | ') : (schema.type ?? 'any');
  if (type === 'object' && schema.additionalProperties) {
    return `{name: ${typeText(api, schema.additionalProperties)}}`;
  }
  return schema.format ? `${type} (${schema.format})` : type;
}

/** An initial body: the schema's own example, else its required fields. */
export function exampleOf(api, given) {
  const { schema } = resolve(api, given);
  if (schema.examples?.length) return schema.examples[0];
  if ('default' in schema) return schema.default;
  if (schema.enum) return schema.enum[0];
  switch (schema.type) {
    case 'object':
      return Object.fromEntries(
        (schema.required ?? []).map((key) => [key, exampleOf(api, schema.properties[key])]),
      );
    case 'array':
      return [];
    case 'integer':
    case 'number':
      return schema.minimum ?? 0;
    case 'boolean':
      return false;
    default:
      return '';
  }
}
