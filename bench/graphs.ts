/** Teams and their graphs of steps as the bench runs them. */
import type { StepSpec } from '../src/features/teams/rules/team.ts';

export const shapes = ['chain', 'fan'] as const;
export type Shape = (typeof shapes)[number];

export type Needs = Pick<StepSpec, 'step_key' | 'depends_on'>;

/** A chain, or a root, what comes after it side by side, and one step after all of these. `count`: at least 3. */
export function graph(shape: Shape, count: number): Needs[] {
  const keys = Array.from({ length: count }, (_, i) => `s${i}`);
  if (shape === 'chain')
    return keys.map((step_key, i) => ({ step_key, depends_on: keys.slice(Math.max(0, i - 1), i) }));
  const [root, ...rest] = keys;
  const last = rest.pop()!;
  return [
    { step_key: root!, depends_on: [] },
    ...rest.map((step_key) => ({ step_key, depends_on: [root!] })),
    { step_key: last, depends_on: rest },
  ];
}

/** A team's definition as a client sends it; steps go to its first member. An agent is absent where a member is driven from outside. */
export function teamOf(
  members: { member_id: string; agent?: { argv: string[]; workdir: string; node_id?: string } }[],
  steps: readonly (Needs & { member_id?: string })[],
) {
  return { members, steps: steps.map((step) => ({ ...step })) };
}

/** The same graph for `make`; every step does nothing. */
export function makefile(steps: readonly Needs[]): string {
  const rules = steps.map(({ step_key, depends_on }) => `${step_key}: ${depends_on.join(' ')}\n\t@true\n`);
  const all = steps.map(({ step_key }) => step_key).join(' ');
  return `all: ${all}\n.PHONY: all ${all}\n${rules.join('')}`;
}
