/** Orders the test files from slowest to fastest, so that no slow file runs alone at the end. */
import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that are slow for their size, the slowest first. The others follow in vitest's own order (by size in a fresh clone).
 */
const SLOW = [
  'src/link/node/server.test.ts',
  'src/node/node.test.ts',
  'src/features/agents/pending.test.ts',
  'src/node/folders/worktrees.test.ts',
  'src/tools/agent-doctor/doctor.test.ts',
  'src/node/faults.test.ts',
  'src/node/folders/special-files.test.ts',
  'src/features/notifications/service.test.ts',
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
    return [...slow, ...others];
  }

  #name({ moduleId }: TestSpecification): string {
    return relative(this.ctx.config.root, moduleId);
  }
}
