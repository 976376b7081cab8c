/**
 * The bench's probe in a page, which runs before the page's first script. It measures frames, paints, layout shifts and waiting
 * times. It is not bundled, so it imports only types.
 */
import type { Probe, SeenLine, Shift } from './probed.ts';

interface LayoutShift extends PerformanceEntry {
  value: number;
  hadRecentInput: boolean;
}

/** Browsers do not report shorter events. */
const EVENT_MS_MIN = 16;
const TIME = /@(\d{16})@/g;

const shifts: Shift[] = [];
const interactions = new Map<number, number>();
let largest_paint = 0;
let lines: { seen: SeenLine[]; stop(): void } | null = null;
let awaited: Promise<number> | null = null;

function observe(type: string, take: (entry: PerformanceEntry) => void): void {
  const options = { type, buffered: true, durationThreshold: EVENT_MS_MIN };
  new PerformanceObserver((list) => list.getEntries().forEach(take)).observe(options);
}

observe('layout-shift', (entry) => {
  const { startTime: at, value, hadRecentInput } = entry as LayoutShift;
  if (!hadRecentInput) shifts.push({ at, value });
});
observe('largest-contentful-paint', (entry) => {
  largest_paint = entry.startTime;
});
observe('event', (entry) => {
  const { interactionId: id, duration } = entry as PerformanceEventTiming;
  if (id) interactions.set(id, Math.max(interactions.get(id) ?? 0, duration));
});

function find(selector: string): Element {
  const found = document.querySelector(selector);
  if (!found) throw new Error(`nothing in the page is ${selector}`);
  return found;
}

/** Calls `onFrame` in each frame with the elapsed share of the time, 0 to 1. Returns the durations of the frames. */
function eachFrame(ms: number, onFrame: (share: number) => void): Promise<number[]> {
  const frames: number[] = [];
  return new Promise((resolve) => {
    let begun_at: number | null = null;
    let last_at = 0;
    const frame = (now: number) => {
      if (begun_at !== null) frames.push(now - last_at);
      begun_at ??= now;
      last_at = now;
      onFrame(Math.min(1, (now - begun_at) / ms));
      if (now - begun_at < ms) requestAnimationFrame(frame);
      else resolve(frames);
    };
    requestAnimationFrame(frame);
  });
}

function afterTask(fn: () => void): void {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    fn();
  };
  port2.postMessage(null);
}

/** Whether the browser is producing a frame. It is set by the first callback of the frame. */
let in_frame = false;
let watches_frames = false;
function watchFrames(): void {
  if (watches_frames) return;
  watches_frames = true;
  const frame = () => {
    in_frame = true;
    afterTask(() => {
      in_frame = false;
    });
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

/** Calls `fn` after this thread's part in painting the current content, in this frame or the next one. */
function afterPaint(fn: () => void): void {
  if (in_frame) afterTask(fn);
  else requestAnimationFrame(() => afterTask(fn));
}

/** Calls `look` now and at every change below `root`. Returns a function that ends this. */
function atChanges(root: Node, onChange: () => void): () => void {
  const observer = new MutationObserver(onChange);
  observer.observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
  onChange();
  return () => observer.disconnect();
}

const probe: Probe = {
  frames: (ms) => eachFrame(ms, () => {}),

  async scroll(selector, ms) {
    const element = find(selector);
    let nodes = 0;
    const frames = await eachFrame(ms, (share) => {
      nodes = Math.max(nodes, document.querySelectorAll('*').length);
      element.scrollTop = share * (element.scrollHeight - element.clientHeight);
    });
    return { frames, nodes };
  },

  async follow(selector, ms) {
    const element = find(selector);
    let from_end_px = 0;
    const check = () => {
      const { scrollHeight, scrollTop, clientHeight } = element;
      from_end_px = Math.max(from_end_px, scrollHeight - scrollTop - clientHeight);
    };
    const frames = await eachFrame(ms, () => afterTask(check));
    return { frames, from_end_px };
  },

  seeLines(selector) {
    const element = find(selector);
    const seen: SeenLine[] = [];
    watchFrames();
    // Each new line is recorded once, even if its row is rendered several times. Existing lines are not recorded.
    let newest: string | null = null;
    const stop = atChanges(element, () => {
      const times = [...element.textContent.matchAll(TIME)].map(([, time]) => time!);
      const fresh = newest === null ? [] : times.filter((time) => time > newest!);
      newest = times.at(-1) ?? newest ?? '';
      if (fresh.length === 0) return;
      afterPaint(() => {
        const painted_us = (performance.timeOrigin + performance.now()) * 1000;
        seen.push(...fresh.map((time) => ({ written_us: Number(time), painted_us })));
      });
    });
    lines = { seen, stop };
  },

  seenLines() {
    if (!lines) throw new Error('no lines were looked for');
    lines.stop();
    return lines.seen;
  },

  markChanges(selector, name) {
    new MutationObserver(() => performance.mark(name)).observe(find(selector), {
      subtree: true,
      childList: true,
      characterData: true,
    });
  },

  awaitAfter(type, selector, text) {
    watchFrames();
    const there = () =>
      [...document.querySelectorAll(selector)].some((element) => element.textContent.includes(text));
    awaited = new Promise((resolve) => {
      const begin = ({ timeStamp }: Event) => {
        let seen = false;
        const stop = atChanges(document, () => {
          if (seen || !there()) return;
          seen = true;
          afterPaint(() => {
            stop();
            resolve(performance.now() - timeStamp);
          });
        });
      };
      window.addEventListener(type, begin, { capture: true, once: true });
    });
  },

  awaited() {
    if (!awaited) throw new Error('nothing was waited for');
    return awaited;
  },

  shifts: () => shifts,
  firstPaint: () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
  largestPaint: () => largest_paint,
  interactions: () => [...interactions.values()],
  forget() {
    interactions.clear();
    shifts.length = 0;
  },
};
Object.assign(globalThis, { probe });
