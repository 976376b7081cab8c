/** The service's own log: destination, format, and a rate limit for warnings that outsiders can cause. */
import pino, { type DestinationStream, type Logger } from 'pino';
import type { Clock } from './clock.ts';
import { limits } from './limits.ts';

export type { Logger };

export interface LogOptions {
  level: 'debug' | 'info';
  format: 'json' | 'text';
  /** Path of a file, or null for stderr. */
  output: string | null;
  /** Text for a person at a terminal: without hashes, stacks, and what the message already says. */
  brief?: boolean;
}

export interface LogFile {
  log: Logger;
  /** Reopens the file after log rotation (SIGHUP). If that fails, keeps writing to the old file. */
  reopen(): void;
}

/**
 * Opens the service's own log: one JSON record per line, or lines of text for people. Callers must not log secrets.
 * Throws if the file cannot be opened; later errors (a full disk, a closed terminal) lose records but never stop the
 * service.
 */
export function openLog(options: LogOptions): LogFile {
  const file = pino.destination({
    dest: options.output ?? 2,
    append: true,
    mkdir: true,
    sync: true,
    mode: 0o600,
    maxLength: limits.log_waiting_bytes_max,
  });
  file.on('error', () => {});
  const target: DestinationStream =
    options.format === 'json' ? file : { write: (line) => file.write(asText(line, options.brief ?? false)) };
  const log = pino(
    {
      level: options.level,
      base: null,
      messageKey: 'message',
      timestamp: () => `,"timestamp":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    target,
  );
  const reopen = () => {
    if (options.output === null) return;
    try {
      file.reopen();
    } catch (error) {
      log.error({ err: error }, 'cannot reopen the log file; still writing to the old one');
    }
  };
  return { log, reopen };
}

export const silentLog: Logger = pino({ level: 'silent' });

/** A rate-limited warning that counts the omitted occurrences, so that unauthenticated clients cannot fill the log. */
export class RateLimitedWarning {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #message: string;
  /** The reasons that were logged in the current period. */
  readonly #reasons = new Set<string>();
  #period_start_ms = Number.NEGATIVE_INFINITY;
  #suppressed = 0;

  constructor(log: Logger, clock: Clock, message: string) {
    this.#log = log;
    this.#clock = clock;
    this.#message = message;
  }

  /**
   * Logs each reason at most once per `limits.refusal_log_ms`, and at most `limits.refusal_log_reasons_max` reasons.
   * `reason` is cut after 200 characters.
   */
  warn(reason: string, details: Record<string, unknown>): void {
    this.#startPeriod();
    const short = reason.slice(0, 200);
    if (this.#reasons.has(short) || this.#reasons.size >= limits.refusal_log_reasons_max) {
      this.#suppressed++;
      return;
    }
    const suppressed = this.#suppressed;
    this.#reasons.add(short);
    this.#suppressed = 0;
    this.#log.warn({ reason: short, ...details, ...(suppressed > 0 && { suppressed }) }, this.#message);
  }

  #startPeriod(): void {
    const now_ms = this.#clock.now();
    // Uses the absolute difference, so that setting the clock back does not silence the warning.
    if (Math.abs(now_ms - this.#period_start_ms) < limits.refusal_log_ms) return;
    this.#period_start_ms = now_ms;
    this.#reasons.clear();
  }
}

function asText(line: string, brief: boolean): string {
  const { timestamp, level, message, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const details = Object.entries(brief ? briefly(rest, level, message) : rest)
    .filter(([, value]) => value !== null && !isEmptyObject(value))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join(' ');
  return `${escapeControls(`${timestamp} ${String(level).padEnd(5)} ${message ?? ''}${details ? ` ${details}` : ''}`)}\n`;
}

/**
 * The fields that tell a person something. Of an act in the audit log: who did it, and to which agent; `svc audit ls` shows
 * the rest. Warnings keep their details, because they say what was refused.
 */
function briefly(fields: Record<string, unknown>, level: unknown, message: unknown): Record<string, unknown> {
  const { audit_hash: _hash, audit_id, event, err, ...rest } = fields;
  const { ip: _ip, workdir: _workdir, details: _details, ...act } = rest;
  const error = (err as { message?: unknown } | undefined)?.message ?? err;
  return {
    ...(event !== undefined && event !== message && { event }),
    ...(audit_id !== undefined && level === 'info' ? act : rest),
    ...(error !== undefined && { error }),
  };
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

/** Escapes control characters as JSON does, including those above 0x7e, which a terminal would interpret. */
function escapeControls(text: string): string {
  return text.replaceAll(
    /\p{Cc}/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
