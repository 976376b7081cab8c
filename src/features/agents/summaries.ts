/**
 * Keeps the summaries in agents' records up to date: limits how often the progress of a session is published, and measures
 * the changes in an agent's folder when its turn or session ends. Both are best effort: a measurement that fails is repeated a
 * few times, and the next change makes up for one that was missed.
 */
import type { Tx } from '../../store/store.ts';
import type { AgentBase } from './core.ts';
import { limits } from './limits.ts';
import { readInWorkdir } from './placement.ts';
import { type AgentRow, findAgent, updateAgent } from './queries/agents.ts';
import type { DiffSize } from './rules.ts';

export class Summaries {
  readonly #core: AgentBase;
  /** Sessions whose progress was published a moment ago. */
  readonly #recent = new Map<string, { timer: NodeJS.Timeout; changed: boolean }>();
  /** Agents whose folder is being measured. `again`: it changed meanwhile. */
  readonly #measuring = new Map<string, { again: boolean }>();
  /** Agents whose measurement failed and is repeated later. */
  readonly #repetitions = new Map<string, NodeJS.Timeout>();
  #closed = false;

  constructor(core: AgentBase) {
    this.#core = core;
  }

  /**
   * Whether a session may publish new progress in this transaction. If it did so a moment ago, returns false, and calls
   * `publish` when the time is up.
   */
  mayPublish(tx: Tx, session_id: string, publish: () => Promise<unknown>): boolean {
    const recent = this.#recent.get(session_id);
    if (recent) {
      recent.changed = true;
      return false;
    }
    // The transaction may run again.
    tx.afterCommit(() => this.#begin(session_id, publish));
    return true;
  }

  #begin(session_id: string, publish: () => Promise<unknown>): void {
    if (this.#recent.has(session_id)) return;
    const timer = setTimeout(() => {
      const { changed } = this.#recent.get(session_id)!;
      this.#recent.delete(session_id);
      if (!changed || this.#closed) return;
      publish().catch((err: unknown) => this.#failed(err, { session_id }));
    }, limits.progress_interval_ms);
    this.#recent.set(session_id, { timer: timer.unref(), changed: false });
  }

  /** Measures the changes in the agent's folder, in the background. */
  measure(agent_id: string): void {
    this.#measureUntilDone(agent_id, limits.measure_repetitions);
  }

  /** `repetitions`: how many times to repeat a measurement that fails, for example because git holds a lock. */
  #measureUntilDone(agent_id: string, repetitions: number): void {
    const current = this.#measuring.get(agent_id);
    if (current) {
      current.again = true;
      return;
    }
    if (this.#closed) return;
    clearTimeout(this.#repetitions.get(agent_id));
    this.#repetitions.delete(agent_id);
    const entry = { again: false };
    this.#measuring.set(agent_id, entry);
    let has_failed = false;
    this.#measure(agent_id)
      .catch((err: unknown) => {
        has_failed = true;
        this.#failed(err, { agent_id });
      })
      .finally(() => {
        this.#measuring.delete(agent_id);
        if (entry.again) this.measure(agent_id);
        else if (has_failed && repetitions > 0) this.#repeatLater(agent_id, repetitions - 1);
      });
  }

  #repeatLater(agent_id: string, repetitions: number): void {
    if (this.#closed) return;
    const repeat = () => this.#measureUntilDone(agent_id, repetitions);
    this.#repetitions.set(agent_id, setTimeout(repeat, limits.measure_again_ms).unref());
  }

  /** Measures the changes now. Resolves when the agent's record has them, or if they cannot be measured. */
  async measureNow(agent_id: string): Promise<void> {
    await this.#measure(agent_id).catch((err: unknown) => this.#failed(err, { agent_id }));
  }

  close(): void {
    this.#closed = true;
    for (const { timer } of this.#recent.values()) clearTimeout(timer);
    for (const timer of this.#repetitions.values()) clearTimeout(timer);
  }

  async #measure(agent_id: string): Promise<void> {
    const { store, records } = this.#core;
    const row = await store.read((reader) => findAgent(reader, agent_id));
    if (!row || !isMeasured(row)) return;
    const size = await this.#size(row);
    const diff = size && JSON.stringify(size);
    if (diff === row.diff || this.#closed) return;
    await store.write(async (tx) => {
      if ((await findAgent(tx, agent_id))?.num !== row.num) return;
      updateAgent(tx, row.num, { diff });
      await records.publish(tx, agent_id);
    });
  }

  async #size(row: AgentRow): Promise<DiffSize | null> {
    const { folders } = this.#core.nodes.get(row.node_id);
    const { workdir, worktree_base: base, owner_id: owner } = row;
    const request = { workdir, base, owner, skip_remote: true };
    const { git, files } = await readInWorkdir(this.#core, row, () => folders.changes(request));
    if (!git) return null;
    const sum = (count: 'additions' | 'deletions') =>
      files.reduce((total, file) => total + (file[count] ?? 0), 0);
    return { files: files.length, added: sum('additions'), removed: sum('deletions') };
  }

  /** The folder may be gone, or its node unreachable. */
  #failed(err: unknown, details: object): void {
    if (!this.#closed) this.#core.log.debug({ err, ...details }, 'cannot update the summary of an agent');
  }
}

/** Whether to run git for the agent: not for programs in existing folders, which may start and end many times a second. */
export function isMeasured({
  protocol,
  worktree_repo,
}: Pick<AgentRow, 'protocol' | 'worktree_repo'>): boolean {
  return protocol === 'acp' || worktree_repo !== null;
}
