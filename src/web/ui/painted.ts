/** Work that the first paint of a screen need not wait for. */
import { startTransition, useEffect, useState } from 'react';

/** A hidden page has no frames. */
const FRAME_MS_MAX = 100;

/** Calls `fn` once, after the next frame is painted. Returns a function that cancels this. */
export function afterPaint(fn: () => void): () => void {
  const frame = requestAnimationFrame(() => {
    clearTimeout(timer);
    // The frame is painted before the next task.
    timer = setTimeout(fn);
  });
  let timer = setTimeout(() => {
    cancelAnimationFrame(frame);
    fn();
  }, FRAME_MS_MAX);
  return () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
}

/** Whether the component has been painted. */
export function usePainted(): boolean {
  const [is_painted, setPainted] = useState(false);
  useEffect(() => afterPaint(() => startTransition(() => setPainted(true))), []);
  return is_painted;
}
