/** Before tests of the whole program: the web UI that it serves. In a process of its own, which is not in test mode. */
import { run } from '../scripts/run.ts';

export async function setup(): Promise<void> {
  const { ok, output } = await run(['node', 'scripts/build-web.ts', '--if-needed']);
  if (!ok) throw new Error(`the web UI could not be built:\n${output}`);
}
