/**
 * The stream of one agent, for everybody here who watches it: one connection, which reads where the one who is furthest
 * behind is. Who is ahead of it is given nothing twice; who comes with an earlier position has it opened again from
 * there. So each watch is given every event after its own position once and in order, wherever connections break.
 *
 * It is read only as fast as pages take it. A page that takes nothing holds up the others for a moment; then they go on, and
 * the stream goes back for it once it takes again.
 */
import { type Client, type Frame, Nudges, type StreamState } from '../../client/client.ts';
import { Batches } from './batches.ts';
import { bounds } from './bounds.ts';
import type { Watch } from './watch.ts';

interface Entry {
  frame: Frame;
  /** Where a reader is behind it. */
  position: number;
}

export interface AgentStreamOptions {
  client: Client;
  agent_id: string;
  /** All watches of this agent, also those that have no stream now. */
  all: () => Iterable<Watch>;
  /** It cannot be read at all. */
  onFailure: (error: unknown) => void;
}

export class AgentStream {
  readonly #options: AgentStreamOptions;
  readonly #watches = new Set<Watch>();
  readonly #nudges = new Nudges();
  readonly #batches = new Batches<Entry>((entries) => this.#deliver(entries));
  #reading: AbortController | null = null;
  /** Where the connection is; null before anything came of one that began at the newest events. */
  #position: number | null = null;
  #tail = 0;
  #state: StreamState = 'connecting';
  #next_attempt_at: number | null = null;
  #wakeUp = () => {};

  constructor(options: AgentStreamOptions) {
    this.#options = options;
  }

  get is_empty(): boolean {
    return this.#watches.size === 0;
  }

  has(watch: Watch): boolean {
    return this.#watches.has(watch);
  }

  join(watch: Watch): void {
    this.#batches.flush();
    watch.is_parked = false;
    if (watch.cursor === null && this.#position !== null) {
      watch.cursor = Math.max(0, this.#position - watch.tail);
    }
    this.#watches.add(watch);
    watch.tell(this.#state, this.#next_attempt_at);
    if (this.#reading === null || this.#isMissedBy(watch)) this.#open();
    this.#wakeUp();
  }

  /** All others leave. */
  keep(wanted: readonly Watch[]): void {
    this.#batches.flush();
    for (const watch of this.#watches) if (!wanted.includes(watch)) this.#watches.delete(watch);
    this.#skip();
    this.#wakeUp();
  }

  taken(watch: Watch): void {
    watch.taken();
    if (watch.is_parked) {
      this.#batches.flush();
      watch.is_parked = false;
      if (this.#isMissedBy(watch)) this.#open();
    }
    this.#wakeUp();
  }

  nudge(renew: boolean): void {
    this.#nudges.nudge(renew);
  }

  close(): void {
    this.#batches.flush();
    this.#reading?.abort();
    this.#watches.clear();
    this.#wakeUp();
  }

  #isMissedBy({ cursor, tail }: Watch): boolean {
    if (cursor === null) return tail > this.#tail;
    return this.#position === null || cursor < this.#position;
  }

  #open(): void {
    this.#reading?.abort();
    this.#wakeUp();
    const reading = new AbortController();
    this.#reading = reading;
    const awake = this.#awake();
    const cursors = awake.flatMap(({ cursor }) => cursor ?? []);
    this.#position = cursors.length > 0 ? Math.min(...cursors) : null;
    this.#tail = Math.max(0, ...awake.map(({ tail }) => tail));
    void this.#read(reading.signal);
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { client, agent_id, onFailure } = this.#options;
    const query = this.#position === null ? { tail: this.#tail } : { after: this.#position };
    const onState = (state: StreamState, wait_ms?: number) => {
      // Opened from another position it is as connected as it was before, until that fails.
      if (!signal.aborted && state !== 'connecting') this.#tell(state, wait_ms);
    };
    const args = { params: { agent_id }, query, signal };
    try {
      for await (const frame of client.follow('followAgent', args, { onState, nudges: this.#nudges })) {
        if (signal.aborted) return;
        this.#take(frame);
        if (this.#isHeldUp()) await this.#room(signal);
      }
    } catch (error) {
      if (!signal.aborted) onFailure(error);
    }
  }

  #take(frame: Frame): void {
    if (frame.id === null) return;
    this.#position = Number(frame.id);
    if (frame.data.type !== 'heartbeat') {
      this.#batches.add({ frame, position: this.#position });
      return;
    }
    this.#batches.flush();
    for (const watch of this.#watches) watch.cursor ??= this.#position;
  }

  #deliver(entries: readonly Entry[]): void {
    const reset = entries.findIndex(isReset);
    if (reset !== -1) {
      this.#deliver(entries.slice(0, reset));
      this.#deliverReset(entries[reset]!);
      this.#deliver(entries.slice(reset + 1));
      return;
    }
    for (const watch of this.#watches) {
      if (watch.is_parked) continue;
      const { cursor } = watch;
      const missing = cursor === null ? entries : entries.filter(({ position }) => position > cursor);
      const last = missing.at(-1);
      if (last)
        watch.give(
          missing.map(({ frame }) => frame),
          last.position,
        );
    }
  }

  /** The log is shorter than it was: that concerns everybody who has seen more of it, whether they read now or not. */
  #deliverReset(reset: Entry): void {
    for (const watch of this.#options.all()) {
      if (watch.is_over) continue;
      if (watch.cursor === null || watch.cursor > reset.position) watch.give([reset.frame], reset.position);
    }
  }

  #awake(): Watch[] {
    return [...this.#watches].filter(({ is_parked }) => !is_parked);
  }

  /** Who would be given the next event. */
  #front(): Watch[] {
    const position = this.#position ?? 0;
    return this.#awake().filter(({ cursor }) => (cursor ?? 0) <= position);
  }

  /** Nobody wants what comes next for a while: it goes on where the others are. */
  #skip(): void {
    if (this.#awake().length > 0 && this.#front().length === 0) this.#open();
  }

  #isHeldUp(): boolean {
    const front = this.#front();
    return front.length === 0 || front.some((watch) => watch.is_full);
  }

  async #room(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#isHeldUp()) {
      if (await this.#woken(bounds.stall_ms)) continue;
      const full = this.#front().filter((watch) => watch.is_full);
      if (full.length === this.#awake().length) continue;
      for (const watch of full) watch.is_parked = true;
      this.#skip();
    }
  }

  /** Whether somebody woke it up within that time. */
  async #woken(within_ms: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(resolve, within_ms, false);
    this.#wakeUp = () => resolve(true);
    const woken = await promise;
    clearTimeout(timer);
    return woken;
  }

  #tell(state: StreamState, wait_ms?: number): void {
    this.#state = state;
    this.#next_attempt_at = wait_ms === undefined ? null : Date.now() + wait_ms;
    for (const watch of this.#watches) watch.tell(state, this.#next_attempt_at);
  }
}

function isReset({ frame }: Entry): boolean {
  return frame.data.type === 'error' && frame.data.code === 'reset';
}
