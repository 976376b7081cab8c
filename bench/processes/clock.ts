/** Time, as the bench and its processes measure it. */

/** Microseconds of the machine's monotonic clock, which is the same in every process. */
export function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

export interface Elapsed {
  wall_ms: number;
  /** Processor time of this process, including its threads. */
  cpu_ms: number;
}

/** Starts to measure; the returned function reads the time since then. */
export function stopwatch(): () => Elapsed {
  const cpu_before = process.cpuUsage();
  const begun_ms = performance.now();
  return () => {
    const wall_ms = performance.now() - begun_ms;
    const { user, system } = process.cpuUsage(cpu_before);
    return { wall_ms, cpu_ms: (user + system) / 1000 };
  };
}
