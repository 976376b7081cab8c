/** Columns of the planes that share a database, and of what they share beside it. */

export interface PlanesTables {
  planes: {
    /** Of one run of a plane. */
    id: string;
    name: string;
    /** `host:port` at which other planes reach it; null while it stands by. */
    address: string | null;
    version: string;
    /** The number of the claim that it took; null while it stands by. */
    claim: number | null;
    started_at: number;
    /** By the clock of the database, like `started_at`. */
    beat_at: number;
  };
  /** Files of `internal_grpc.security.cert_dir`. */
  trust_files: {
    name: string;
    /** Encrypted with the planes' `secret.key`. */
    sealed: Uint8Array;
  };
}
