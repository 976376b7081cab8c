/** Variables of members' agents in a team's definition (pure): values are stored and never shown. */
import { limits } from '../../../base/limits.ts';
import type { SpecFault } from './spec.ts';
import type { Member, RedactedSpec, SpecInput, TeamSpec, UnplacedSpec } from './team.ts';

/** The definition with the names of its variables in place of their values. */
export function redactSpec(spec: TeamSpec): RedactedSpec {
  const members = spec.members.map((member) => {
    if (member.agent === null) return { ...member, agent: null };
    const { env, ...agent } = member.agent;
    return { ...member, agent: { ...agent, env_keys: Object.keys(env) } };
  });
  return { ...spec, members };
}

/**
 * The definition to store: `env` of each member, plus the values in `before` of each of its `env_keys` without a new
 * value. Members are matched by id, and a renamed one by its position.
 */
export function restoreEnv(
  input: SpecInput,
  before: TeamSpec | null,
): { spec: UnplacedSpec; fault: null } | { spec: null; fault: SpecFault } {
  const members: UnplacedSpec['members'] = [];
  for (const [index, member] of input.members.entries()) {
    if (member.agent === null) {
      members.push({ ...member, agent: null });
      continue;
    }
    const { env_keys = [], ...agent } = member.agent;
    const stored_env = before === null ? {} : (memberBefore(input, before, index)?.agent?.env ?? {});
    const env: Record<string, string> = {};
    for (const key of env_keys) {
      if (Object.hasOwn(agent.env, key)) continue;
      const value = Object.hasOwn(stored_env, key) ? stored_env[key] : undefined;
      if (value === undefined) {
        const path = ['members', index, 'agent', 'env_keys'];
        return { spec: null, fault: { path, message: `has no value for ${key}: set it in env` } };
      }
      env[key] = value;
    }
    Object.assign(env, agent.env);
    if (Object.keys(env).length > limits.env_items_max) {
      const message = `must have at most ${limits.env_items_max} entries`;
      return { spec: null, fault: { path: ['members', index, 'agent', 'env'], message } };
    }
    members.push({ ...member, agent: { ...agent, env } });
  }
  return { spec: { ...input, members }, fault: null };
}

function memberBefore(input: SpecInput, before: TeamSpec, index: number): Member | undefined {
  const { member_id } = input.members[index]!;
  const same = before.members.find((member) => member.member_id === member_id);
  if (same) return same;
  const previous = before.members[index];
  const isRenamed = previous && !input.members.some((member) => member.member_id === previous.member_id);
  return isRenamed ? previous : undefined;
}
