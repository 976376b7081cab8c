/** The service's own log: where it goes, in which form, and how those who knock are kept from filling it. */
import pino, { type DestinationStream, type Logger } from 'pino';
import type { Clock } from './clock.ts';
import { limits } from './limits.ts';

export type { Logger };

export interface LogOptions {
  level: 'debug' | 'info';
  format: 'json' | 'text';
  /** Path of a file, or null for standard error. */
  output: string | null;
}

export interface LogFile {
  log: Logger;
  /** Opens the file again, after it was moved away (SIGHUP); where that fails the old one goes on. */
  reopen(): void;
}

/**
 * The service's own log: one JSON record a line, or a line of text for people. Secrets never come here. Throws when the
 * file cannot be opened; later trouble (a full disk, a terminal that was closed) costs records, never the service.
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
    options.format === 'json' ? file : { write: (line) => file.write(asText(line)) };
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
      log.error({ err: error }, 'the log file cannot be opened again: the old one goes on');
    }
  };
  return { log, reopen };
}

export const silentLog: Logger = pino({ level: 'silent' });

/** One line in a while at most, with how many were left out: whoever knocks must not be able to fill the log. */
export class RareWarning {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #message: string;
  #logged_ms = Number.NEGATIVE_INFINITY;
  #silent = 0;

  constructor(log: Logger, clock: Clock, message: string) {
    this.#log = log;
    this.#clock = clock;
    this.#message = message;
  }

  warn(reason: string, details: Record<string, unknown>): void {
    const now_ms = this.#clock.now();
    // A clock that was set back does not silence it.
    if (Math.abs(now_ms - this.#logged_ms) < limits.refusal_log_ms) {
      this.#silent++;
      return;
    }
    const silent = this.#silent;
    this.#logged_ms = now_ms;
    this.#silent = 0;
    this.#log.warn(
      { reason: reason.slice(0, 200), ...details, ...(silent > 0 && { silent }) },
      this.#message,
    );
  }
}

function asText(line: string): string {
  const { timestamp, level, message, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const details = Object.entries(rest)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join(' ');
  return `${inert(`${timestamp} ${String(level).padEnd(5)} ${message ?? ''}${details ? ` ${details}` : ''}`)}\n`;
}

/** Control characters, those above 0x7e too, as JSON would write them: a terminal obeys them. */
function inert(text: string): string {
  return text.replaceAll(
    /\p{Cc}/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
