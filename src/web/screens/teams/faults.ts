/**
 * Finds the field of a definition that an error is about. The service names the field (`spec.steps[].max_attempts must be
 * …`) but not the list item; the first item that has this error is chosen. Pure.
 */

import { MEMBER_ID, specFault } from '../../../features/teams/rules/spec.ts';
import type { TeamSpec } from '../../../features/teams/rules/team.ts';
import { table } from '../../table.ts';
import { at, type Doc, getList, isObject, type Json, type Path } from './document.ts';

export interface Fault {
  path: Path;
  message: string;
}

/** Messages that do not start with a path. */
const elsewhere = table({
  'team name is required': 'name',
  'team name already exists': 'name',
  'team key already exists': 'key',
  step_key: 'spec.steps[].step_key',
  member_id: 'spec.members[].member_id',
});

/** The path of the field; null if the message is about no particular one. */
export function pathInMessage(message: string, doc: Doc): Path | null {
  const named = elsewhere[message];
  if (named) return [named];
  const found = /^([a-z_]+(?:\[\])?(?:\.[A-Za-z0-9_-]+(?:\[\])?)*) (.+)$/.exec(message);
  if (!found) return null;
  const [, name = '', rule = ''] = found;
  const parts = (elsewhere[name] ?? name).split('.').flatMap((part) => part.split(/(?=\[\])/));
  if (!['name', 'key', 'description', 'human_members', 'spec'].includes(parts[0]!)) return null;
  const candidates = expand(doc, parts);
  if (rule.startsWith('must not contain a dependency cycle')) return findCycle(doc);
  return candidates.find((path) => isWrong(doc, path, rule)) ?? candidates.at(-1) ?? null;
}

/** Every path that a name with `[]` may stand for. */
function expand(doc: Doc, parts: readonly string[]): Path[] {
  let paths: Path[] = [[]];
  for (const part of parts) {
    paths = paths.flatMap((path): Path[] => {
      if (part !== '[]') return [[...path, part]];
      const list = at(doc, path);
      return Array.isArray(list) ? list.map((_, index) => [...path, index]) : [];
    });
  }
  return paths;
}

function isWrong(doc: Doc, path: Path, rule: string): boolean {
  const value = at(doc, path);
  const last = path.at(-1);
  if (rule === 'is required') return value === undefined || value === null || value === '' || isBlank(value);
  if (rule === 'must be unique') return listAbove(doc, path).indexOf(value) < (path.at(-2) as number);
  if (rule === 'must reference a defined member') return !names(doc, 'members', 'member_id').includes(value!);
  if (rule === 'must reference a defined step') {
    const known = names(doc, 'steps', 'step_key');
    return Array.isArray(value) && value.some((need) => !known.includes(need));
  }
  if (rule === 'entries must be non-empty strings') {
    return Array.isArray(value) && value.some((need) => typeof need !== 'string' || need === '');
  }
  if (rule.startsWith('needs command')) {
    return isObject(value) && !value.command && !value.argv && !value.preset;
  }
  if (last === 'member_id' && rule.startsWith('must be 1 to 64')) {
    return typeof value === 'string' && !MEMBER_ID.test(value);
  }
  if (rule.startsWith('must not be ')) return value === rule.slice(12).split(/[ ,]/)[0];
  const range = /^must be an integer from (\d+) to (\d+)$/.exec(rule);
  if (range) {
    return (
      value !== undefined &&
      (!Number.isInteger(value) || Number(value) < Number(range[1]) || Number(value) > Number(range[2]))
    );
  }
  const most = /^must be at most (\d+) characters$/.exec(rule);
  if (most) return typeof value === 'string' && value.length > Number(most[1]);
  const one = /^must be one of: (.+)$/.exec(rule);
  if (one) return value !== undefined && !one[1]!.split(', ').includes(String(value));
  if (rule === 'must be a string') return value !== undefined && typeof value !== 'string';
  if (rule === 'must be an array') return !Array.isArray(value);
  if (rule === 'must be an object') return !isObject(value);
  return value !== undefined && value !== null;
}

function isBlank(value: Json): boolean {
  return typeof value === 'string' && value.trim() === '';
}

/** The same field of all items in the list. */
function listAbove(doc: Doc, path: Path): (Json | undefined)[] {
  const list = at(doc, path.slice(0, -2));
  return Array.isArray(list) ? list.map((item) => at(item, path.slice(-1))) : [];
}

function names(doc: Doc, list: string, field: string): Json[] {
  return getList(doc, ['spec', list]).map((item) => item[field] ?? null);
}

/** The path of the first step in a dependency cycle. */
function findCycle(doc: Doc): Path {
  const steps = getList(doc, ['spec', 'steps']);
  const needs = new Map(
    steps.map(({ step_key, depends_on }) => [step_key, Array.isArray(depends_on) ? depends_on : []]),
  );
  const index = steps.findIndex(({ step_key }) => {
    const seen = new Set<Json>();
    const open = [...(needs.get(step_key) ?? [])];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (next === step_key) return true;
      if (!seen.has(next)) {
        seen.add(next);
        open.push(...(needs.get(next) ?? []));
      }
    }
    return false;
  });
  return index === -1 ? ['spec', 'steps'] : ['spec', 'steps', index, 'depends_on'];
}

/** Checks the references between the parts as the service does, while the user types. */
export function findFault(doc: Doc): Fault | null {
  const spec = shaped(doc);
  const fault = spec && specFault(spec);
  if (!fault) return null;
  const name = fault.path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[]` : `${text}.${part}`),
    'spec',
  );
  const path = fault.message.includes('cycle') ? findCycle(doc) : ['spec', ...fault.path];
  return { path, message: `${name} ${fault.message}` };
}

/** Null while a field is missing or has the wrong type. */
function shaped(doc: Doc): TeamSpec | null {
  const spec = at(doc, ['spec']);
  if (!isObject(spec) || !Array.isArray(spec.members) || spec.members.length === 0) return null;
  const members = spec.members.filter((member) => isObject(member) && typeof member.member_id === 'string');
  const list = spec.steps ?? [];
  if (!Array.isArray(list) || members.length < spec.members.length) return null;
  const leader_member_id = spec.leader_member_id ?? null;
  if (leader_member_id !== null && typeof leader_member_id !== 'string') return null;
  const first = (members[0] as Doc).member_id;
  const steps = list.map((item) => ({
    ...(isObject(item) ? item : {}),
    step_key: at(item, ['step_key']),
    member_id: at(item, ['member_id']) ?? leader_member_id ?? first,
    depends_on: [...new Set((at(item, ['depends_on']) ?? []) as Json[])],
  }));
  if (!steps.every(({ step_key }) => typeof step_key === 'string' && step_key !== '')) return null;
  return { members, leader_member_id, steps } as unknown as TeamSpec;
}

/** The path as the `data-path` attribute of a control. */
export function pathKey(path: Path): string {
  return path.join('.');
}
