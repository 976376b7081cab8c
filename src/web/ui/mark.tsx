/** The mark of svc. Its dot is amber while something waits for the user. */
import { dot, LANE_WIDTH, lanes, MARK_RADIUS, MARK_SIZE, markColors } from './mark-shape.ts';

export function Mark({ waiting = false, className }: { waiting?: boolean; className?: string }) {
  return (
    <svg
      viewBox={`0 0 ${MARK_SIZE} ${MARK_SIZE}`}
      aria-hidden="true"
      className={className ?? 'size-5 shrink-0'}
      data-mark={waiting ? 'waiting' : 'quiet'}
    >
      <rect width={MARK_SIZE} height={MARK_SIZE} rx={MARK_RADIUS} fill={markColors.square} />
      {lanes.map(({ y, from, to }) => (
        <line
          key={y}
          x1={from}
          x2={to}
          y1={y}
          y2={y}
          stroke={markColors.lane}
          strokeWidth={LANE_WIDTH}
          strokeLinecap="round"
        />
      ))}
      <circle
        cx={dot.x}
        cy={dot.y}
        r={dot.radius}
        fill={waiting ? markColors.waiting : markColors.lane}
        className="transition-[fill]"
      />
    </svg>
  );
}

/** The mark with the name. */
export function Wordmark({ waiting = false }: { waiting?: boolean }) {
  return (
    <span className="inline-flex items-center gap-2">
      <Mark waiting={waiting} />
      <span className="font-mono font-semibold text-[15px]">svc</span>
    </span>
  );
}
