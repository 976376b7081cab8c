/**
 * One of several planes that share a database. The one with the claim is active, and the others stand by. Each has a row in
 * `planes`, which it keeps alive with a heartbeat. All times are of the database's clock.
 */
import type pg from 'pg';
import { Wake } from '../../base/async.ts';
import type { TrustFile } from '../trust-files.ts';
import { limits } from './limits.ts';

/** The plane that is active, as others see it. */
export interface ActivePlane {
  id: string;
  name: string;
  /** `host:port` at which it accepts forwarded requests; null while it starts. */
  address: string | null;
}

/** What a plane that stands by has to know of the database. */
export interface StandbyView {
  active: ActivePlane;
  plane_id: string;
  /** The fingerprint of the data directories, see `plane-id.ts`. */
  data_dir: string;
  trust_files: TrustFile[];
}

export interface MemberOptions {
  /** Of this run of the plane. */
  id: string;
  /** For people. */
  name: string;
  version: string;
  /** Ends the wait for the claim, which then fails with the reason of the signal. */
  signal: AbortSignal;
  /**
   * Called about once a second while another plane is active; null if that one does not say anything about itself. A Problem
   * that it throws ends the wait for the claim.
   */
  onStandby(view: StandbyView | null): Promise<void> | void;
}

export class Member {
  readonly options: MemberOptions;
  /** Woken when there is something new to say in this plane's row. */
  readonly changed = new Wake();
  #address: string | null = null;

  constructor(options: MemberOptions) {
    this.options = options;
  }

  /** Tells the other planes where this one, which is active now, accepts forwarded requests (`host:port`). */
  announce(address: string): void {
    this.#address = address;
    this.changed.notify();
  }

  /** Renews this plane's row. `claim`: the number of its claim; null while it stands by. */
  async beat(client: pg.Client, claim: string | null): Promise<void> {
    const { id, name, version } = this.options;
    await client.query(BEAT, [id, name, version, this.#address, claim]);
  }

  /** Deletes the rows of planes that have been silent for an hour. */
  async forgetSilent(client: pg.Client): Promise<void> {
    await client.query(FORGET_SILENT);
  }

  /** Deletes this plane's row. */
  async leave(client: pg.Client): Promise<void> {
    await client.query('DELETE FROM planes WHERE id = $1', [this.options.id]);
  }

  /** Null if no plane is active that has a row: it is starting, or does not share the database with others. */
  static async view(client: pg.Client): Promise<{ view: StandbyView; beat_at: string } | null> {
    const active = await client.query<ActivePlane & { beat_at: string }>(ACTIVE);
    const meta = await client.query<{ key: string; value: string }>(META);
    const trust_files = await client.query<TrustFile>(TRUST_FILES);
    const value = (name: string) => meta.rows.find(({ key }) => key === name)?.value;
    const [plane_id, data_dir] = [value('plane_id'), value('data_dir')];
    const [row] = active.rows;
    if (row === undefined || plane_id === undefined || data_dir === undefined) return null;
    const { beat_at, ...found } = row;
    return { view: { active: found, plane_id, data_dir, trust_files: trust_files.rows }, beat_at };
  }
}

const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

const BEAT = `
  INSERT INTO planes (id, name, version, address, claim, started_at, beat_at)
  VALUES ($1, $2, $3, $4, $5, ${NOW}, ${NOW})
  ON CONFLICT (id) DO UPDATE SET address = excluded.address, claim = excluded.claim, beat_at = excluded.beat_at`;

const FORGET_SILENT = `DELETE FROM planes WHERE beat_at < ${NOW} - ${limits.silent_plane_kept_ms}`;

const ACTIVE = `
  SELECT planes.id, planes.name, planes.address, planes.beat_at
  FROM planes JOIN plane_claim ON planes.claim = plane_claim.number`;

const META = `SELECT key, value FROM meta WHERE key IN ('plane_id', 'data_dir')`;

const TRUST_FILES = 'SELECT name, sealed FROM trust_files ORDER BY name';
