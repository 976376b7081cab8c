/** How fast a node's link answers: the latest round trip, and a line of the last minutes. */

const WIDTH = 56;
const HEIGHT = 16;
/** How many heartbeats the line shows, from the right. */
const SHOWN = 40;
/** The least that its height stands for, so that jitter of a fast link stays flat. */
const SCALE_MS = 10;

export function Latency({ latencies_ms }: { latencies_ms: readonly number[] }) {
  const latest = latencies_ms.at(-1);
  if (latest === undefined) return null;
  const range = `${formatMs(Math.min(...latencies_ms))} to ${formatMs(Math.max(...latencies_ms))}`;
  return (
    <span
      className="inline-flex items-center gap-2 whitespace-nowrap tabular-nums"
      title={`Round trips of the last ${latencies_ms.length} heartbeats: ${range}`}
    >
      <svg
        aria-hidden
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        className="h-4 w-14 shrink-0 fill-none stroke-current text-muted"
      >
        <polyline points={toPoints(latencies_ms.slice(-SHOWN))} strokeWidth={1.25} strokeLinejoin="round" />
      </svg>
      {formatMs(latest)}
    </span>
  );
}

/** The points of the line, newest at the right edge. */
export function toPoints(latencies_ms: readonly number[]): string {
  const highest = Math.max(SCALE_MS, ...latencies_ms);
  const step = WIDTH / (SHOWN - 1);
  return latencies_ms
    .map((ms, at) => {
      const x = WIDTH - (latencies_ms.length - 1 - at) * step;
      const y = HEIGHT - 1 - (ms / highest) * (HEIGHT - 2);
      return `${round(x)},${round(y)}`;
    })
    .join(' ');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** `0.4 ms`, `12 ms`: below 10 ms with one decimal place. */
export function formatMs(ms: number): string {
  return `${ms < 9.95 ? ms.toFixed(1) : Math.round(ms)} ms`;
}
