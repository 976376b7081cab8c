/** Runs before all tests: builds the program's bundle, which provides the processes and threads that tests start. */
import type { TestProject } from 'vitest/node';
import { run } from '../scripts/run.ts';

export async function setup(project: TestProject): Promise<void> {
  await build('build-program');
  project.onTestsRerun(() => build('build-program'));
}

/** Runs a script in a separate process, which is not in test mode. */
export async function build(script: string): Promise<void> {
  const { ok, output } = await run(['node', `scripts/${script}.ts`, '--if-needed']);
  if (!ok) throw new Error(`${script} failed:\n${output}`);
}
