/** An agent by its number, used in rows, and its id, used in frames. */
export interface AgentRef {
  num: number;
  id: string;
}
