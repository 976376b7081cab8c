/** Checks the consistency of a team's definition. `features/teams/contract/spec.ts` checks its form first. */
import type { UnplacedSpec } from './team.ts';

/** Part of actor ids, so it contains no `@` and `:`. Also part of URLs, in which `.` and `..` would change the path. */
export const MEMBER_ID = /^(?!\.\.?$)[A-Za-z0-9._-]{1,64}$/;

export interface SpecFault {
  path: (string | number)[];
  message: string;
}

/** The first rule that the definition violates, or null. */
export function specFault(spec: UnplacedSpec): SpecFault | null {
  return memberFault(spec) ?? stepFault(spec);
}

function memberFault({ members, leader_member_id }: UnplacedSpec): SpecFault | null {
  const ids = members.map(({ member_id }) => member_id);
  const twice = firstRepeat(ids);
  if (twice !== -1) return { path: ['members', twice, 'member_id'], message: 'must be unique' };
  // In actor ids, `user` is a person and `leader` the leader, so members cannot use these ids.
  const reserved = ids.findIndex((id) => id === 'user' || (id === 'leader' && leader_member_id !== id));
  if (reserved !== -1) {
    const message = `must not be ${ids[reserved]}${ids[reserved] === 'leader' ? ', unless it leads' : ''}`;
    return { path: ['members', reserved, 'member_id'], message };
  }
  if (leader_member_id !== null && !ids.includes(leader_member_id))
    return { path: ['leader_member_id'], message: 'must reference a defined member' };
  return null;
}

function stepFault({ members, steps }: UnplacedSpec): SpecFault | null {
  const keys = steps.map(({ step_key }) => step_key);
  const twice = firstRepeat(keys);
  if (twice !== -1) return { path: ['steps', twice, 'step_key'], message: 'must be unique' };
  const ids = new Set(members.map(({ member_id }) => member_id));
  const stray = steps.findIndex(({ member_id }) => !ids.has(member_id));
  if (stray !== -1)
    return { path: ['steps', stray, 'member_id'], message: 'must reference a defined member' };
  const known = new Set(keys);
  const loose = steps.findIndex(({ depends_on }) => depends_on.some((key) => !known.has(key)));
  if (loose !== -1) return { path: ['steps', loose, 'depends_on'], message: 'must reference a defined step' };
  if (topologicalOrder(steps) === null)
    return { path: ['steps'], message: 'must not contain a dependency cycle' };
  return null;
}

/** The steps in an order in which each comes after its dependencies; null if there is a cycle. */
export function topologicalOrder<S extends { step_key: string; depends_on: readonly string[] }>(
  steps: readonly S[],
): S[] | null {
  const waits_for = new Map(steps.map((step) => [step.step_key, step.depends_on.length]));
  const dependents = new Map<string, S[]>(steps.map(({ step_key }) => [step_key, []]));
  for (const step of steps) for (const key of step.depends_on) dependents.get(key)!.push(step);
  const ordered = steps.filter(({ depends_on }) => depends_on.length === 0);
  for (const { step_key } of ordered) {
    for (const step of dependents.get(step_key)!) {
      const left = waits_for.get(step.step_key)! - 1;
      waits_for.set(step.step_key, left);
      if (left === 0) ordered.push(step);
    }
  }
  return ordered.length === steps.length ? ordered : null;
}

export function unique(keys: readonly string[]): string[] {
  return [...new Set(keys)];
}

function firstRepeat(ids: readonly string[]): number {
  const seen = new Set<string>();
  return ids.findIndex((id) => seen.has(id) || !seen.add(id));
}
