/** The teams and step graphs that the bench runs. */
import type { StepSpec } from '../src/features/teams/rules/team.ts';

export const shapes = ['chain', 'fan'] as const;
export type Shape = (typeof shapes)[number];

export type Needs = Pick<StepSpec, 'step_key' | 'depends_on'>;

/** A chain; or a root, parallel steps after it, and a last step after all of these. `count`: at least 3. */
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

/** A team definition in the form of the API. Steps belong to the first member by default. An outside member has no agent. */
export function teamOf(
  members: { member_id: string; agent?: { argv: string[]; workdir: string; node_id?: string } }[],
  steps: readonly (Needs & { member_id?: string })[],
) {
  return { members, steps: steps.map((step) => ({ ...step })) };
}

/** The same graph as a makefile whose rules do nothing. */
export function makefile(steps: readonly Needs[]): string {
  const rules = steps.map(({ step_key, depends_on }) => `${step_key}: ${depends_on.join(' ')}\n\t@true\n`);
  const all = steps.map(({ step_key }) => step_key).join(' ');
  return `all: ${all}\n.PHONY: all ${all}\n${rules.join('')}`;
}
