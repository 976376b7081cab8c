/** Identifies an agent by its number, which rows use, and its id, which frames use. */
export interface AgentRef {
  num: number;
  id: string;
}
