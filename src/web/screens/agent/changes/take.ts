/** The texts that take an agent's changes elsewhere (pure). */
import { showArgv } from '../../../../core/argv.ts';

/** The command that merges the agent's branch into what is checked out in its repository. */
export function mergeCommand(repository: string, branch: string): string {
  return showArgv(['git', '-C', repository, 'merge', branch]);
}
