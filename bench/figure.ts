/** One measured row of `npm run bench`. */
export interface Figure {
  what: string;
  unit: string;
  value: number;
  /** What the machine can do at all, measured in the same run, in the same unit. */
  limit?: number;
  limit_is?: string;
}
