/** Links without a network, for tests of the registry. They record calls and report what a test sets. */

import type { NodeRow } from '../features/nodes/queries.ts';
import type { HealthReport } from '../features/nodes/rules.ts';
import type { LinkState, Links } from '../features/nodes/service.ts';

export class FakeLinks implements Links {
  /** All calls in order, for example `open a`, `changed a`, `close a`. */
  readonly calls: string[] = [];
  readonly rows = new Map<string, NodeRow>();
  readonly states = new Map<string, Partial<LinkState>>();
  readonly round_trips = new Map<string, number[]>();
  report: (row: NodeRow) => Promise<HealthReport> = () =>
    Promise.reject(new Error('not available in this test'));

  open(row: NodeRow): void {
    this.calls.push(`open ${row.id}`);
    this.rows.set(row.id, row);
  }

  update(row: NodeRow): void {
    this.calls.push(`changed ${row.id}`);
    this.rows.set(row.id, row);
  }

  async close(node_id: string): Promise<void> {
    this.calls.push(`close ${node_id}`);
    this.rows.delete(node_id);
  }

  state(node_id: string): LinkState {
    if (!this.rows.has(node_id)) throw new Error(`there is no link to ${node_id}`);
    const connecting = { status: 'connecting', version: null, last_seen_at_ms: null } as const;
    const unknown = {
      error: null,
      has_default_root: null,
      worktree_root_problem: null,
      unrecovered_sessions: 0,
    };
    return { ...connecting, ...unknown, ...this.states.get(node_id) };
  }

  latencies(node_id: string): readonly number[] {
    return this.round_trips.get(node_id) ?? [];
  }

  async untilRootChecked(): Promise<void> {}

  probe(row: NodeRow): Promise<HealthReport> {
    return this.report(row);
  }
}
