/** Commands that move the data of this machine's plane between the embedded database and PostgreSQL. */
import type { Command } from 'commander';
import type { Context, Io, Moved, MoveOptions } from './context.ts';
import { exitCodes, Failure } from './failure.ts';
import { limits } from './limits.ts';
import { addJsonCommand, type LocalOptions, localFlags, withLocal } from './options.ts';
import { printJson, printStatus } from './output.ts';
import { printable } from './terminal.ts';

export function addMoves(program: Command, context: Context): void {
  addMove(program, context, {
    name: 'move-to-postgres',
    description: 'move the data to the empty PostgreSQL database of database.url; svc must be stopped',
    to: 'postgres',
    report: ({ data_dir, database, rows }) => [
      `moved ${rows} rows to ${database}; start svc with the same database.url`,
      `${data_dir} still contains svc.db and log as they were: delete them once you have a backup of the new database`,
    ],
  });
  addMove(program, context, {
    name: 'move-to-embedded',
    description: 'move the data from PostgreSQL to the embedded database; svc must be stopped',
    to: 'embedded',
    report: ({ data_dir, database, rows, aside }) => [
      `moved ${rows} rows to ${data_dir}; unset database.url, and start svc`,
      `${database} still contains the data as it was: delete it once you have a backup`,
      ...(aside === null ? [] : [`the files of an older embedded database are in ${aside}`]),
    ],
  });
}

interface Move extends Pick<MoveOptions, 'to'> {
  name: string;
  description: string;
  report(moved: Moved): string[];
}

function addMove(program: Command, { io, local }: Context, move: Move): void {
  withLocal(addJsonCommand(program, move.name, move.description)).action(
    async (options: LocalOptions & { json?: boolean }) => {
      const config = await local.loadConfig(localFlags(options));
      const progress = new ProgressLine(io);
      const moved = await local
        .moveDatabase(config, { to: move.to, onProgress: (now) => progress.show(now) })
        .catch((error) => {
          if (io.signal.aborted) throw new Failure(exitCodes.interrupted, '');
          throw error;
        })
        .finally(() => progress.clear());
      if (options.json) await printJson(io, moved);
      else for (const line of move.report(moved)) printStatus(io, printable(line));
    },
  );
}

/** One line that is overwritten; nothing if standard error is not a terminal. */
class ProgressLine {
  readonly #stderr: Io['stderr'];
  #shown_ms = 0;

  constructor({ stderr }: Io) {
    this.#stderr = stderr;
  }

  show({ table, rows, checking }: Parameters<MoveOptions['onProgress']>[0]): void {
    const now_ms = performance.now();
    if (!this.#stderr.isTTY || now_ms - this.#shown_ms < limits.progress_ms) return;
    this.#shown_ms = now_ms;
    this.#stderr.write(`\r${checking ? 'checking' : 'copying'} ${table}: ${rows} rows so far\x1b[K`);
  }

  clear(): void {
    if (this.#shown_ms > 0) this.#stderr.write('\r\x1b[K');
  }
}
