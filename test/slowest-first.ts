/** Orders the test files from slowest to fastest, so that no slow file runs alone at the end. */
import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that are slow for their size, the slowest first. The others follow in vitest's own order (by size in a fresh clone).
 */
const SLOW = [
  'test/attacks/isolation.test.ts',
  'test/attacks/worktrees.test.ts',
  'test/attacks/repositories.test.ts',
  'test/unreachable-node.test.ts',
  'test/attacks/hidden.test.ts',
  'test/attacks/programs.test.ts',
  'test/team-runs.test.ts',
  'test/rotation.test.ts',
  'test/web-everyone.test.ts',
  'test/faults.test.ts',
  'test/actor-walk.test.ts',
  'test/cli.test.ts',
  'test/link-network.test.ts',
  'test/tutorial-first-agent.test.ts',
];

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const is_slow = (spec: TestSpecification) => SLOW.includes(this.#name(spec));
    const slow = sorted
      .filter(is_slow)
      .sort((a, b) => SLOW.indexOf(this.#name(a)) - SLOW.indexOf(this.#name(b)));
    const others = sorted.filter((spec) => !is_slow(spec));
    // Projects run one after another in this order.
    const first = others.findIndex((spec) => spec.project.name === slow[0]?.project.name);
    return first < 0 ? [...others, ...slow] : others.toSpliced(first, 0, ...slow);
  }

  #name({ moduleId }: TestSpecification): string {
    return relative(this.ctx.config.root, moduleId);
  }
}
