/** The checks of `svc doctor` that a running service answers: its folders, nodes and kept worktrees. */
import { Unreachable } from '../client/client.ts';
import { Problem, problems } from '../core/problem.ts';
import { type Api, type ApiOptions, connect } from './api.ts';
import { type Context, type DoctorCheck, failed, folderNames, passed } from './context.ts';
import { readCredentials } from './credentials.ts';
import { Failure } from './failure.ts';
import { localFlags } from './options.ts';

export interface ServiceReport {
  checks: DoctorCheck[];
  /** Lines for the person at the terminal: what was not checked, and why. */
  notes: string[];
  /** Whether the checks include the folders of the service that runs on the data directory of this command. */
  has_local_folders: boolean;
}

interface Place {
  url: string;
  is_local: boolean;
}

/**
 * Asks the service at `--url` or `SVC_URL`, else the one on this machine, else the one of the last sign-in. If it cannot be
 * asked, a note says why, and there are no checks; only an unreachable `--url` is a failed check.
 */
export async function examineService(context: Context, options: ApiOptions): Promise<ServiceReport> {
  const report: ServiceReport = { checks: [], notes: [], has_local_folders: false };
  try {
    const place = await findPlace(context, options);
    if (place === null) return skipped('none runs on this machine, and you are not signed in to another one');
    await examine(await connect(context, { ...options, url: place.url }), place, report);
    return report;
  } catch (error) {
    if (error instanceof Unreachable && options.url !== undefined)
      return { ...report, checks: [failed('service', error.message, 'start it, or use another --url')] };
    const is_expected = [Unreachable, Failure, Problem].some((type) => error instanceof type);
    if (!is_expected) throw error;
    return skipped((error as Error).message);
  }
}

function skipped(why: string): ServiceReport {
  return { checks: [], notes: [`the running service was not asked: ${why}`], has_local_folders: false };
}

/** Null if there is no service to ask. */
async function findPlace({ io, local }: Context, options: ApiOptions): Promise<Place | null> {
  const running = await localService();
  const named = options.url ?? (io.env.SVC_URL || undefined);
  const url = named ?? running ?? (await readCredentials(io)).current;
  return url === null ? null : { url, is_local: url === running };

  /** The URL of the plane on this data directory; null if none runs. */
  async function localService(): Promise<string | null> {
    // The checks of this machine report a configuration that cannot be loaded.
    const config = await local.loadConfig(localFlags(options)).catch(() => null);
    if (config === null || config.get('server.role') === 'node') return null;
    return (await local.holderOf(config.get('data_dir')))?.url ?? null;
  }
}

/** Adds to the report what the service answers. */
async function examine(api: Api, place: Place, report: ServiceReport): Promise<void> {
  const { checks, notes } = report;
  const diagnosis = await unlessDenied('folders', api.call('getDiagnosis', {}));
  const version = diagnosis?.version ?? null;
  checks.push(passed('service', `${api.url}${version === null ? '' : `, svc ${version}`}`));
  if (diagnosis) {
    checks.push(...diagnosis.folders.map(folderCheck));
    report.has_local_folders = place.is_local;
  }
  const nodes = await unlessDenied('nodes', api.all('listAgentNodes', {}));
  checks.push(...(nodes ?? []).map((node) => nodeCheck(node, version)));
  const kept = await unlessDenied('kept worktrees', api.all('listWorktrees', { query: { state: 'kept' } }));
  if (kept) checks.push(keptCheck(kept.length));

  /** Null, with a note, if the caller may not read this, or if the service is too old to answer. */
  async function unlessDenied<T>(what: string, answer: Promise<T>): Promise<T | null> {
    try {
      return await answer;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const is_denied = error.kind === 'forbidden' || error.code === problems.rootRequired().code;
      if (!is_denied && error.kind !== 'not_found') throw error;
      const why = is_denied ? error.message : 'it runs an older svc';
      notes.push(`the ${what} of ${api.url} were not checked: ${why}`);
      return null;
    }
  }
}

type Diagnosis = Awaited<ReturnType<typeof Api.prototype.call<'getDiagnosis'>>>;
type Node = Awaited<ReturnType<typeof Api.prototype.all<'listAgentNodes'>>>[number];

function folderCheck({ setting, path, problem }: Diagnosis['folders'][number]): DoctorCheck {
  const name = folderNames[setting];
  return problem === null
    ? passed(name, path)
    : failed(name, `${path} ${problem}`, `create it, or remove it from ${setting} (svc config set)`);
}

/** `version`: that of the service, or null if it is not known. */
function nodeCheck(node: Node, version: string | null): DoctorCheck {
  const name = `node ${node.id}`;
  if (node.status !== 'connected') {
    const since =
      node.last_seen_at === null
        ? `never connected, registered ${node.created_at}`
        : `since ${node.last_seen_at}`;
    return failed(name, `${node.status}, ${since}`, `svc nodes test ${node.id}`);
  }
  if (node.worktree_root_problem !== null) {
    const hint = 'change its safe_paths, or its default_worktree_root (svc nodes set)';
    return failed(name, node.worktree_root_problem, hint);
  }
  if (node.unrecovered_sessions > 0) {
    const detail = `sessions on it that the service does not know and has not recovered: ${node.unrecovered_sessions}`;
    return failed(name, detail, 'delete agents labeled recovered=true, then restart svc on the node');
  }
  if (node.version === null) return passed(name, 'connected');
  // Not a failure: the link itself refuses versions that do not work together.
  const other = version === null || node.version === version ? '' : `; the service runs ${version}`;
  return passed(name, `connected, svc ${node.version}${other}`);
}

function keptCheck(count: number): DoctorCheck {
  return passed('kept worktrees', count === 0 ? 'none' : `${count}; to list them: svc worktrees ls --kept`);
}
