/** What the probe in a page tells the bench. Times are the page's own, in milliseconds, unless they say otherwise. */

export interface Shift {
  at: number;
  value: number;
}

export interface Scrolled {
  /** From one frame to the next. */
  frames: number[];
  /** Elements in the page, at most. */
  nodes: number;
}

export interface Followed {
  frames: number[];
  /** How far the last line was from being seen, at most, looked at after each frame was painted. */
  from_end_px: number;
}

export interface SeenLine {
  /** As the line says it: of the machine's monotonic clock. */
  written_us: number;
  /** Of the wall clock. */
  painted_us: number;
}

/** As `bench/web/probe.ts` gives it to the page, where it is called `probe`. */
export interface Probe {
  /** For so long nothing is done but counting frames. */
  frames(ms: number): Promise<number[]>;
  /** From the top of what an element holds to its end. */
  scroll(selector: string, ms: number): Promise<Scrolled>;
  follow(selector: string, ms: number): Promise<Followed>;
  /** Begins to look for lines with their time in them; `seenLines` ends it. */
  seeLines(selector: string): void;
  seenLines(): SeenLine[];
  /** Leaves a mark of this name in the trace whenever something in the element changes. */
  markChanges(selector: string, name: string): void;
  /** From the next event of this type until something that fits is painted. */
  awaitAfter(event: string, selector: string, words: string): void;
  awaited(): Promise<number>;
  /** Layout shifts since the page began, or since `forget`. */
  shifts(): Shift[];
  /** When the largest thing so far was painted. */
  largestPaint(): number;
  /** How long each interaction took that took longer than the browser tells of at all. */
  interactions(): number[];
  /** What shifted so far, and how people fared. */
  forget(): void;
}
