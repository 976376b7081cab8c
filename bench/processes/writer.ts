/** Writes lines with their time to the standard outputs of agents, in turn, at a steady rate. */
import { constants, openSync, writeSync } from 'node:fs';
import { nowUs } from './clock.ts';
import { readArguments } from './read-arguments.ts';
import { repeatSteadily } from './steady.ts';

export interface WriterArgs {
  /** Paths of FIFOs. */
  outputs: string[];
  lines_per_s: number;
  seconds: number;
  /** The text before and after the time; absent: that of a log line. */
  around?: [before: string, behind: string];
}

const log: [string, string] = ['', ' INFO a worker did something that is worth a line of log, as they do'];
const { outputs, lines_per_s, seconds, around: [before, behind] = log } = await readArguments<WriterArgs>();
const files = outputs.map((path) => openSync(path, constants.O_WRONLY));
const written = await repeatSteadily(lines_per_s, seconds, (index) => {
  writeSync(files[index % files.length]!, `${before}@${String(nowUs()).padStart(16, '0')}@${behind}\n`);
});
process.send!({ written });
