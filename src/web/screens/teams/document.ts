/**
 * A team's definition as JSON text, which a form and a text field edit. The text is authoritative: the form parses it and
 * writes it again, and invalid JSON stays as it was typed. Pure.
 */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Doc = { [key: string]: Json };
export type Path = readonly (string | number)[];

export type Parsed = { doc: Doc; fault: null } | { doc: null; fault: string };

export function parse(text: string): Parsed {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    return { doc: null, fault: (error as Error).message };
  }
  return isObject(value)
    ? { doc: value, fault: null }
    : { doc: null, fault: 'The definition must be an object.' };
}

export function write(doc: Doc): string {
  return `${JSON.stringify(doc, null, 2)}\n`;
}

/** The editable part of a team. */
export function formatDocument(team: {
  name: string;
  key: string;
  description: string;
  human_members: string[];
  spec: object;
}): string {
  const { name, key, description, human_members, spec } = team;
  return write({ name, key, description, human_members, spec: spec as Doc });
}

export function isObject(value: unknown): value is Doc {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function at(doc: Json | undefined, path: Path): Json | undefined {
  let value: Json | undefined = doc;
  for (const part of path) {
    if (Array.isArray(value) && typeof part === 'number') value = value[part];
    else if (isObject(value) && typeof part === 'string' && Object.hasOwn(value, part)) value = value[part];
    else return undefined;
  }
  return value;
}

/** Sets a value in the document; undefined removes it. Missing parents are created. */
export function put(doc: Doc, path: Path, value: Json | undefined): Doc {
  return setAt(doc, path, value) as Doc;
}

function setAt(into: Json | undefined, path: Path, value: Json | undefined): Json | undefined {
  const [part, ...rest] = path;
  if (part === undefined) return value;
  if (typeof part === 'number') {
    const list = Array.isArray(into) ? into : [];
    const next = setAt(list[part], rest, value);
    if (next === undefined) return list.toSpliced(part, 1);
    return part < list.length ? list.with(part, next) : [...list, next];
  }
  const record = isObject(into) ? into : {};
  const next = setAt(Object.hasOwn(record, part) ? record[part] : undefined, rest, value);
  const { [part]: _, ...others } = record;
  if (next === undefined) return others;
  // The key keeps its place, so that the text does not jump while the user types.
  return Object.hasOwn(record, part)
    ? Object.fromEntries(Object.entries(record).map(([key, known]) => [key, key === part ? next : known]))
    : { ...record, [part]: next };
}

/** The objects of a list; any other item is replaced with an empty object, to keep the positions. */
export function getList(doc: Doc, path: Path): Doc[] {
  const list = at(doc, path);
  return Array.isArray(list) ? list.map((item) => (isObject(item) ? item : {})) : [];
}

export function getText(doc: Json | undefined, path: Path): string {
  const value = at(doc, path);
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/** Renames a member everywhere in the definition. */
export function renameMember(doc: Doc, index: number, name: string): Doc {
  const before = getText(doc, ['spec', 'members', index, 'member_id']);
  let next = put(doc, ['spec', 'members', index, 'member_id'], name);
  if (before === '' || getList(next, ['spec', 'members']).some(({ member_id }) => member_id === before))
    return next;
  if (at(next, ['spec', 'leader_member_id']) === before) next = put(next, ['spec', 'leader_member_id'], name);
  for (const [place, { member_id }] of getList(next, ['spec', 'steps']).entries()) {
    if (member_id === before) next = put(next, ['spec', 'steps', place, 'member_id'], name);
  }
  return next;
}

/** Gives the node to all agents of members that have none. */
export function placeMembers(doc: Doc, node_id: string): Doc {
  let next = doc;
  for (const [index, { agent }] of getList(doc, ['spec', 'members']).entries()) {
    if (isObject(agent) && (agent.node_id ?? '') === '')
      next = put(next, ['spec', 'members', index, 'agent', 'node_id'], node_id);
  }
  return next;
}

/** Renames a step, also in the dependencies of other steps. */
export function renameStep(doc: Doc, index: number, key: string): Doc {
  const before = getText(doc, ['spec', 'steps', index, 'step_key']);
  const next = put(doc, ['spec', 'steps', index, 'step_key'], key);
  if (before === '' || getList(next, ['spec', 'steps']).some(({ step_key }) => step_key === before))
    return next;
  return mapNeeds(next, (need) => (need === before ? key : need));
}

/** Removes a step, also from the dependencies of other steps. */
export function removeStep(doc: Doc, index: number): Doc {
  const key = getText(doc, ['spec', 'steps', index, 'step_key']);
  const next = put(doc, ['spec', 'steps', index], undefined);
  if (getList(next, ['spec', 'steps']).some(({ step_key }) => step_key === key)) return next;
  return mapNeeds(next, (need) => (need === key ? undefined : need));
}

function mapNeeds(doc: Doc, change: (need: Json) => Json | undefined): Doc {
  let next = doc;
  for (const [place, { depends_on }] of getList(doc, ['spec', 'steps']).entries()) {
    if (!Array.isArray(depends_on)) continue;
    const needs = depends_on.map(change).filter((need) => need !== undefined);
    if (needs.length !== depends_on.length || needs.some((need, i) => need !== depends_on[i])) {
      next = put(next, ['spec', 'steps', place, 'depends_on'], needs);
    }
  }
  return next;
}

/** A name that is not taken. */
export function freeName(base: string, taken: readonly Json[]): string {
  for (let n = taken.length + 1; ; n++) if (!taken.includes(`${base}-${n}`)) return `${base}-${n}`;
}

export interface DrawnStep {
  step_key: string;
  member_id: string;
  depends_on: string[];
}

/** The steps that can be drawn, of a definition that may be incomplete. */
export function drawable(doc: Doc): DrawnStep[] {
  const fallback =
    getText(doc, ['spec', 'leader_member_id']) || getText(doc, ['spec', 'members', 0, 'member_id']);
  return getList(doc, ['spec', 'steps'])
    .filter(({ step_key }) => typeof step_key === 'string' && step_key !== '')
    .map((step) => ({
      step_key: step.step_key as string,
      member_id: getText(step, ['member_id']) || fallback,
      depends_on: Array.isArray(step.depends_on)
        ? step.depends_on.filter((need): need is string => typeof need === 'string')
        : [],
    }));
}
