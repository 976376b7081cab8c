/** The results of the probe in a page. Times are those of the page in milliseconds, unless noted otherwise. */

export interface Shift {
  at: number;
  value: number;
}

export interface Scrolled {
  /** The durations between frames. */
  frames: number[];
  /** The highest number of elements in the page. */
  nodes: number;
}

export interface Followed {
  frames: number[];
  /** The largest distance between the visible part and the end, measured after each painted frame. */
  from_end_px: number;
}

export interface SeenLine {
  /** The time in the line, by the machine's monotonic clock. */
  written_us: number;
  /** By the wall clock. */
  painted_us: number;
}

/** The global `probe` that `bench/web/probe.ts` defines in the page. */
export interface Probe {
  /** Measures frames for this time, without doing anything else. */
  frames(ms: number): Promise<number[]>;
  /** Scrolls the content of an element from its top to its end. */
  scroll(selector: string, ms: number): Promise<Scrolled>;
  follow(selector: string, ms: number): Promise<Followed>;
  /** Starts to record lines that contain their time; `seenLines` ends this. */
  seeLines(selector: string): void;
  seenLines(): SeenLine[];
  /** Adds a mark with this name to the trace whenever the element changes. */
  markChanges(selector: string, name: string): void;
  /** Measures the time from the next event of this type until a matching element is painted; `awaited` returns it. */
  awaitAfter(event: string, selector: string, text: string): void;
  awaited(): Promise<number>;
  /** Layout shifts since the start of the page, or since `forget`. */
  shifts(): Shift[];
  /** The time of the first contentful paint; 0 before it. */
  firstPaint(): number;
  /** The time of the largest contentful paint so far. */
  largestPaint(): number;
  /** The duration of each interaction that the browser reports; it omits short ones. */
  interactions(): number[];
  /** Forgets all layout shifts and interactions so far. */
  forget(): void;
}
