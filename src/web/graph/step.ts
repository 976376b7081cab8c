/** The steps that a graph shows, and their sizes in px. */
export interface GraphStep {
  step_key: string;
  member_id: string;
  depends_on: readonly string[];
}

export interface ShownStep extends GraphStep {
  /** Undefined for the steps of a definition. */
  status?: string;
  started_at?: string | null;
  ended_at?: string | null;
  /** Why it failed, or what it asks. */
  error_text?: string | null;
  /** A member without an agent that it waits for. */
  waits_for?: string | null;
}

export const NODE = { width: 200, height: 56 } as const;
export const GAP = { row: 16, column: 48, margin: 8 } as const;
