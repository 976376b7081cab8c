/**
 * Limits the memory for the unfinished lines of all sessions together. Each line may grow to 32 MiB, so a few agents
 * that never end their lines would otherwise use all memory.
 */

/** A line that has not ended yet. */
export interface UnfinishedLine {
  /** The limit is enforced per owner, so that the agents of one owner do not affect those of others. */
  owner: string;
  /** Frees the bytes. They are not committed, so the spool still has them. */
  drop(): void;
}

export class UnfinishedLines {
  readonly #bytes_max: number;
  readonly #lines = new Map<UnfinishedLine, number>();
  readonly #owners = new Map<string, number>();
  #bytes = 0;

  constructor(bytes_max: number) {
    this.#bytes_max = bytes_max;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Sets how many bytes of memory a line uses. Above the limit, the longest lines of the owner who uses the most memory
   * are dropped until the rest fits. The line that grew may be one of them.
   */
  set(line: UnfinishedLine, bytes: number): void {
    this.#change(line, bytes);
    while (this.#bytes > this.#bytes_max) {
      const longest = this.#longest();
      if (!longest) return;
      this.#change(longest, 0);
      longest.drop();
    }
  }

  #change(line: UnfinishedLine, bytes: number): void {
    const more = bytes - (this.#lines.get(line) ?? 0);
    const of_owner = (this.#owners.get(line.owner) ?? 0) + more;
    this.#bytes += more;
    if (bytes === 0) this.#lines.delete(line);
    else this.#lines.set(line, bytes);
    if (of_owner === 0) this.#owners.delete(line.owner);
    else this.#owners.set(line.owner, of_owner);
  }

  #longest(): UnfinishedLine | undefined {
    const [owner] = [...this.#owners].reduce((one, other) => (other[1] > one[1] ? other : one), ['', 0]);
    let found: UnfinishedLine | undefined;
    let most = 0;
    for (const [line, bytes] of this.#lines) {
      if (line.owner !== owner || bytes <= most) continue;
      found = line;
      most = bytes;
    }
    return found;
  }
}
