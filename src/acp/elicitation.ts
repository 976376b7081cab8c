/**
 * Parses an agent's request for input (`elicitation/create`) into a form or URL that the UI can show in full. The form's
 * schema is ACP's restricted JSON Schema: a flat object of strings, numbers, booleans and choices. Keywords with an
 * unexpected value are ignored, because the agent checks the answer too; anything that cannot be shown is rejected.
 */
import { CLIENT_METHODS } from '@agentclientprotocol/sdk';
import { limits as sharedLimits } from '../base/limits.ts';
import { isRecord } from './json.ts';
import { limits } from './limits.ts';
import { isId, readText } from './message.ts';
import type { ReceivedRequest } from './state.ts';

const textFormats = ['email', 'uri', 'date', 'date-time'] as const;

export interface FormChoice {
  value: string;
  title: string;
  description: string | null;
}

export interface FormField {
  name: string;
  type: 'text' | 'number' | 'integer' | 'boolean' | 'choice' | 'choices';
  title: string | null;
  description: string | null;
  required: boolean;
  /** Only for `text`. */
  format: (typeof textFormats)[number] | null;
  /** Inclusive. `text`: length in characters; number: value; `choices`: how many. */
  min: number | null;
  max: number | null;
  /** Only for `text`: a regular expression. The agent checks it; svc never runs it. */
  pattern: string | null;
  /** Only for `choice` and `choices`; in the agent's order. */
  choices: FormChoice[];
  default: string | number | boolean | string[] | null;
}

export interface Form {
  title: string | null;
  description: string | null;
  /** In the agent's order. */
  fields: FormField[];
}

export interface Elicitation {
  mode: 'form' | 'url';
  message: string;
  /** Null for a URL. */
  form: Form | null;
  /** `http` or `https`, normalized and therefore ASCII; null for a form. */
  url: string | null;
  /** The agent's id for a URL elicitation, which it uses to report completion. */
  acp_id: string | null;
  tool_call_id: string | null;
}

export type ElicitationEvent =
  | { kind: 'input_requested'; request: ReceivedRequest; elicitation: Elicitation }
  | { kind: 'input_unreadable'; request: ReceivedRequest; reason: string }
  | { kind: 'input_completed'; acp_id: string };

/** Parses a request; null for any other method. */
export function elicitationRequest(
  method: string,
  request: ReceivedRequest,
  params: unknown,
): ElicitationEvent | null {
  if (method !== CLIENT_METHODS.elicitation_create) return null;
  try {
    return { kind: 'input_requested', request, elicitation: readElicitation(params) };
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    return { kind: 'input_unreadable', request, reason: error.message };
  }
}

/** Parses the report that a URL elicitation is complete; empty for other notifications, and without a usable id. */
export function elicitationCompletion(method: string, params: unknown): ElicitationEvent[] {
  if (method !== CLIENT_METHODS.elicitation_complete || !isRecord(params)) return [];
  const acp_id = readAcpId(params.elicitationId);
  return acp_id === null ? [] : [{ kind: 'input_completed', acp_id }];
}

/** Why a request cannot be shown to people. The reason is sent to the agent and logged. */
class Unreadable extends Error {}

function readElicitation(params: unknown): Elicitation {
  if (!isRecord(params)) throw new Unreadable('it has no parameters');
  const { mode = 'form', message = '', elicitationId } = params;
  if (typeof message !== 'string') throw new Unreadable('its message is not a string');
  if (message.length > limits.elicitation_message_chars_max) throw new Unreadable('its message is too long');
  const common = { message, tool_call_id: readText(params, 'toolCallId') };
  if (mode === 'form') {
    return { ...common, mode, form: readForm(params.requestedSchema), url: null, acp_id: null };
  }
  if (mode !== 'url') throw new Unreadable('its mode is neither form nor url');
  return { ...common, mode, form: null, url: readUrl(params.url), acp_id: readAcpId(elicitationId) };
}

function readAcpId(value: unknown): string | null {
  return typeof value === 'string' && isId(value) ? value : null;
}

function readUrl(value: unknown): string {
  if (typeof value !== 'string' || !URL.canParse(value)) throw new Unreadable('it has no valid URL');
  const { protocol, username, password, href } = new URL(value);
  if (protocol !== 'https:' && protocol !== 'http:') {
    throw new Unreadable('its URL is neither https nor http');
  }
  // Anything before an @ can be mistaken for the host.
  if (username !== '' || password !== '') throw new Unreadable('its URL has a username or password');
  if (href.length > limits.elicitation_url_chars_max) throw new Unreadable('its URL is too long');
  return href;
}

function readForm(schema: unknown): Form {
  if (!isRecord(schema)) throw new Unreadable('its form has no schema');
  if (JSON.stringify(schema).length > limits.elicitation_form_chars_max) {
    throw new Unreadable('its form is too large');
  }
  const { type = 'object', properties = {}, required } = schema;
  if (type !== 'object' || !isRecord(properties)) throw new Unreadable('its schema is not an object schema');
  const entries = Object.entries(properties);
  if (entries.length > limits.elicitation_fields_max) throw new Unreadable('its form has too many fields');
  const names = new Set<unknown>(Array.isArray(required) ? required : []);
  const fields = entries.map(([name, property]) => readField(name, property, names.has(name)));
  return { ...readLabels(schema), fields };
}

function readField(name: string, property: unknown, required: boolean): FormField {
  const quoted_name = JSON.stringify(name.slice(0, sharedLimits.name_chars_max));
  if (name === '__proto__' || name.length > sharedLimits.name_chars_max) {
    throw new Unreadable(`field ${quoted_name} has a name that cannot be used`);
  }
  const shape = isRecord(property) ? readShape(property) : null;
  if (shape === null) throw new Unreadable(`field ${quoted_name} cannot be shown`);
  return { name, ...readLabels(property), required, ...field_defaults, ...shape };
}

const field_defaults = { format: null, min: null, max: null, pattern: null, choices: [], default: null };
type Shape = Pick<FormField, 'type'> & Partial<FormField>;

/** Null if the property cannot be shown as a field. */
function readShape(property: Record<string, unknown>): Shape | null {
  const { type, default: default_value, minimum, maximum } = property;
  switch (type) {
    case 'boolean':
      return { type, default: typeof default_value === 'boolean' ? default_value : null };
    case 'number':
    case 'integer':
      return { type, ...between(minimum, maximum), default: asNumber(default_value) };
    case 'string':
      return readTextField(property);
    case 'array':
      return readChoices(property);
    default:
      return null;
  }
}

function readTextField(property: Record<string, unknown>): Shape | null {
  const { default: default_value, minLength, maxLength, format, pattern } = property;
  const text = typeof default_value === 'string' ? default_value : null;
  if (isPresent(property.enum) || isPresent(property.oneOf)) {
    const choices = readChoiceList(property.enum, property.oneOf);
    if (choices === null) return null;
    const known = choices.some(({ value }) => value === text);
    return { type: 'choice', choices, default: known ? text : null };
  }
  return {
    type: 'text',
    ...between(minLength, maxLength),
    format: textFormats.find((item) => item === format) ?? null,
    pattern: typeof pattern === 'string' ? pattern : null,
    default: text,
  };
}

function readChoices({
  items,
  default: default_value,
  minItems,
  maxItems,
}: Record<string, unknown>): Shape | null {
  if (!isRecord(items)) return null;
  const choices = readChoiceList(items.enum, items.anyOf ?? items.oneOf);
  if (choices === null) return null;
  const values = choices.map(({ value }) => value);
  const chosen = Array.isArray(default_value)
    ? values.filter((value) => default_value.includes(value))
    : null;
  return { type: 'choices', ...between(minItems, maxItems), choices, default: chosen };
}

/** Null if there are no choices, too many, or one that is not a string. */
function readChoiceList(values: unknown, titled: unknown): FormChoice[] | null {
  const offered = isPresent(titled) ? titled : values;
  if (!Array.isArray(offered) || offered.length === 0) return null;
  if (offered.length > limits.elicitation_choices_max) return null;
  // A repeated value is treated as the same choice.
  const choices = new Map<string, FormChoice>();
  for (const item of offered) {
    const value = isRecord(item) ? item.const : item;
    if (typeof value !== 'string') return null;
    const { title, description } = readLabels(item);
    if (!choices.has(value)) choices.set(value, { value, title: title ?? value, description });
  }
  return [...choices.values()];
}

function readLabels(value: unknown): { title: string | null; description: string | null } {
  const { title, description } = isRecord(value) ? value : {};
  return {
    title: typeof title === 'string' ? title : null,
    description: typeof description === 'string' ? description : null,
  };
}

function between(min: unknown, max: unknown): Pick<FormField, 'min' | 'max'> {
  return { min: asNumber(min), max: asNumber(max) };
}

function asNumber(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}
