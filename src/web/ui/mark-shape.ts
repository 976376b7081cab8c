/** The mark: three lanes of a run in a rounded square of 20 × 20, the middle one ending in a dot. Its icons are made of these too. */
export const MARK_SIZE = 20;
export const MARK_RADIUS = 5;
export const LANE_WIDTH = 2;
export const lanes = [
  { y: 6, from: 5, to: 13 },
  { y: 10, from: 5, to: 10.5 },
  { y: 14, from: 5, to: 9 },
] as const;
export const dot = { x: 14.25, y: 10, radius: 2 };

/** The colors do not depend on the theme, because browsers and home screens show the mark too. */
export const markColors = { square: '#4f46e5', lane: '#ffffff', waiting: '#ffc14d' };
