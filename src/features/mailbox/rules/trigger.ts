/** Mail that an actor sends to itself at a later time. */
export interface Trigger {
  id: string;
  run_id: string;
  actor_id: string;
  /** Exactly one of the three is not null. */
  at: string | null;
  every_seconds: number | null;
  /** A pattern of five fields. */
  cron: string | null;
  /** IANA name; null: UTC. */
  timezone: string | null;
  payload: Record<string, unknown>;
  next_at: string;
  last_at: string | null;
  /** How many times it has fired. */
  fired: number;
  /** A user's id, or the actor's own. */
  created_by: string;
  created_at: string;
}
