import pino, { type DestinationStream, type Logger } from 'pino';

export type { Logger };

export interface LogOptions {
  level: 'debug' | 'info';
  format: 'json' | 'text';
  /** Path of a file, or null for standard error. */
  output: string | null;
}

export interface LogFile {
  log: Logger;
  /** Opens the file again, after it was moved away (SIGHUP). */
  reopen(): void;
}

/** The service's own log: one JSON record a line, or a line of text for people. Secrets never come here. */
export function openLog(options: LogOptions): LogFile {
  const file = pino.destination({
    dest: options.output ?? 2,
    append: true,
    mkdir: true,
    sync: true,
    mode: 0o600,
  });
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
  return { log, reopen: () => (options.output ? file.reopen() : undefined) };
}

export const silentLog: Logger = pino({ level: 'silent' });

function asText(line: string): string {
  const { timestamp, level, message, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const details = Object.entries(rest)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join(' ');
  return `${timestamp} ${String(level).padEnd(5)} ${message ?? ''}${details ? ` ${details}` : ''}\n`;
}
