/** Replaces a folder by a link to another location, then by nothing and by a folder again, at random times. */
import { mkdirSync, renameSync, rmdirSync, symlinkSync, unlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { readArguments } from './read-arguments.ts';

export interface SwapperArgs {
  path: string;
  outside: string;
}

const FOLDER_MS = [0, 1, 20, 60, 120];
const LINK_MS = [0, 0, 1, 5, 20];
const pick = (from: readonly number[]) => from[Math.floor(Math.random() * from.length)]!;

const { path, outside } = await readArguments<SwapperArgs>();
let swaps = 0;
process.on('message', () => process.send!({ swaps }));
for (;;) {
  mkdirSync(`${path}.folder`);
  renameSync(`${path}.folder`, path);
  await sleep(pick(FOLDER_MS));
  symlinkSync(outside, `${path}.link`);
  rmdirSync(path);
  renameSync(`${path}.link`, path);
  await sleep(pick(LINK_MS));
  unlinkSync(path);
  swaps++;
}
