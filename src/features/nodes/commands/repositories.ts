/** The repositories that agents can use on a node, for the commands that list or suggest them. */
import type { Api } from '../../../cli/api.ts';
import { failed } from '../../../cli/failure.ts';
import { printable } from '../../../cli/terminal.ts';
import { showArgv } from '../../../core/argv.ts';
import { MAIN_NODE } from '../../../core/node.ts';
import { Problem, problems } from '../../../core/problem.ts';

/** How many repositories an error names. */
const NAMED_MAX = 5;

/** Without `node_id`: those of the main node, or of the only registered node if no agents run on the main node. */
export function listRepositories(api: Api, node_id?: string) {
  const list = (id: string) => api.call('listRepositories', { params: { node_id: id } });
  if (node_id !== undefined) return list(node_id);
  return list(MAIN_NODE).catch(async (error: unknown) => {
    if (!(error instanceof Problem) || error.code !== problems.noLocalNode().code) throw error;
    const [only, ...others] = await api.all('listNodes', {});
    if (only === undefined || others.length > 0) throw error;
    return list(only.id);
  });
}

/** Makes a request with the folder `repo`. If it is not a repository, throws a `Failure` that names those below it. */
export async function withRepositoryHint<T>(
  api: Api,
  { repo, node_id }: { repo: string | undefined; node_id: string | undefined },
  request: () => Promise<T>,
): Promise<T> {
  try {
    return await request();
  } catch (error) {
    const is_about_folder = error instanceof Problem && /not a git repository/.test(error.message);
    if (repo === undefined || !is_about_folder) throw error;
    const all = await listRepositories(api, node_id).then(
      ({ repositories }) => repositories.map(({ path }) => path),
      () => [],
    );
    const below = all.filter((path) => path.startsWith(`${repo.replace(/\/+$/, '')}/`));
    const more = below.length > NAMED_MAX ? ` and ${below.length - NAMED_MAX} more` : '';
    const command = showArgv(['svc', 'nodes', 'repositories', ...(node_id === undefined ? [] : [node_id])]);
    const remedy =
      below.length > 0
        ? `choose a repository below it: ${below.slice(0, NAMED_MAX).join(', ')}${more}`
        : `choose one of those that ${command} lists`;
    throw failed([`${repo} is not a git repository`, remedy].map(printable).join('\n'));
  }
}
