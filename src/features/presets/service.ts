/**
 * Determines which presets are installed on a node. Queries a node on demand, at most once a minute unless refreshed.
 * Concurrent callers share one query, because it starts programs on the node.
 */
import type { Clock } from '../../base/clock.ts';
import type { Node, ProgramFinding } from '../../core/node.ts';
import { authorize } from '../../core/policy.ts';
import { Problem, problems } from '../../core/problem.ts';
import type { Caller } from '../accounts/rules.ts';
import type { NodeDirectory } from '../feature.ts';
import { limits } from './limits.ts';
import { presets } from './rules/catalog.ts';
import { type PresetRecord, presetRecord, toProgramQuestion } from './rules/preset.ts';

export interface PresetsOptions {
  clock: Clock;
  nodes: Pick<NodeDirectory, 'get' | 'choose'>;
}

/** The findings by preset id. */
type Findings = ReadonlyMap<string, ProgramFinding>;

interface NodeQuery {
  findings: Promise<Findings>;
  /** Null while the query is in progress. */
  answered_at_ms: number | null;
}

export class Presets {
  readonly #options: PresetsOptions;
  readonly #queries = new Map<string, NodeQuery>();

  constructor(options: PresetsOptions) {
    this.#options = options;
  }

  /**
   * `node_id`: by default the main node, or without it the only registered node. `refresh`: queries the node again. Throws
   * `node not found`, `no_local_node`, and `node_unreachable` if the node does not answer.
   */
  async list(caller: Caller, requested: string | undefined, refresh: boolean): Promise<PresetRecord[]> {
    authorize(caller, 'presets.list');
    const { nodes } = this.#options;
    const node_id = nodes.choose(requested);
    const node = nodes.get(node_id);
    const findings = await this.#find(node, node_id, refresh);
    return presets.map((preset) => presetRecord(preset, findings.get(preset.id) ?? null));
  }

  #find(node: Node, node_id: string, refresh: boolean): Promise<Findings> {
    const oldest_ms = this.#options.clock.now() - limits.presets_keep_ms;
    for (const [id, { answered_at_ms }] of this.#queries) {
      if (answered_at_ms !== null && answered_at_ms <= oldest_ms) this.#queries.delete(id);
    }
    const known = this.#queries.get(node_id);
    if (known && (!refresh || known.answered_at_ms === null)) return known.findings;
    const cached: NodeQuery = { findings: fetchFindings(node), answered_at_ms: null };
    this.#queries.set(node_id, cached);
    cached.findings.then(
      () => {
        cached.answered_at_ms = this.#options.clock.now();
      },
      () => {
        if (this.#queries.get(node_id) === cached) this.#queries.delete(node_id);
      },
    );
    return cached.findings;
  }
}

async function fetchFindings(node: Node): Promise<Findings> {
  const questions = presets.flatMap((preset) => {
    const question = toProgramQuestion(preset);
    return question ? [{ id: preset.id, question }] : [];
  });
  try {
    const found = await node.probe(questions.map(({ question }) => question));
    return new Map(questions.map(({ id }, at) => [id, found[at]!]));
  } catch (error) {
    // A node of an earlier release can run presets too, but cannot report which are installed.
    if (error instanceof Problem && error.code === problems.nodeTooOld().code) return new Map();
    throw error;
  }
}
