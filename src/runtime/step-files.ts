/**
 * The data of steps: each session that takes one has a folder with its `input`, made for it, in which it leaves its `output`.
 * The folder is the agent's own, so whatever stands there afterwards is untrusted: only a plain file is read, bounded.
 */
import { constants } from 'node:fs';
import { chown, lstat, mkdir, open, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../base/log.ts';
import { problems } from '../domain/problem.ts';
import { type AgentFolderOptions, agentFolder, openAgentFolder } from './agent-folder.ts';
import { type RemoveOptions, removeTree } from './remove-tree.ts';

export interface StepFilesOptions extends AgentFolderOptions, RemoveOptions {
  log: Logger;
}

/** Not there, a link or a socket in its place, or kept from us. */
const NOTHING = ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'EACCES'];

export class StepFiles {
  readonly #options: StepFilesOptions;

  constructor(options: StepFilesOptions) {
    this.#options = options;
  }

  /** The whole folder anew. Throws a Problem when agents could not reach it, or one of before stays in its place. */
  async make(session_id: string, input: string): Promise<void> {
    await openAgentFolder('steps', this.#options).catch(() => {
      throw problems.noStepFolder();
    });
    const dir = await this.#folder(session_id);
    await this.#remove(dir);
    await mkdir(dir, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'EEXIST' ? problems.noStepFolder() : error;
    });
    const file = join(dir, 'input');
    await writeFile(file, input, { mode: 0o600 });
    const { run_as } = this.#options;
    if (!run_as) return;
    await chown(file, run_as.uid, run_as.gid);
    await chown(dir, run_as.uid, run_as.gid);
  }

  async environment(session_id: string): Promise<Record<string, string>> {
    const dir = await this.#folder(session_id);
    return { SVC_STEP_INPUT: join(dir, 'input'), SVC_STEP_OUTPUT: join(dir, 'output') };
  }

  /** Null for what is not there, no plain file, or a link to somebody else's. */
  async output(session_id: string, max: number): Promise<Uint8Array | null> {
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
    const path = join(await this.#folder(session_id), 'output');
    const file = await open(path, flags).catch((error: NodeJS.ErrnoException) => {
      if (NOTHING.includes(error.code ?? '')) return null;
      throw error;
    });
    if (!file) return null;
    try {
      const info = await file.stat();
      // Under our own user a second name may be of a file that only we can read.
      const theirs = info.uid === (this.#options.run_as?.uid ?? info.uid) && info.nlink === 1;
      if (!info.isFile() || !theirs) return null;
      const bytes = Buffer.alloc(Math.min(info.size, max));
      const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
      return bytes.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  }

  async drop(session_id: string): Promise<void> {
    await this.#remove(await this.#folder(session_id));
  }

  /** Removes those of sessions that are no more. */
  async sweep(known: ReadonlySet<string>): Promise<void> {
    const dir = await agentFolder('steps', this.#options);
    const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    for (const name of names.filter((one) => !known.has(one))) {
      await this.#remove(join(dir, name));
    }
  }

  /** What an agent put there so that it stays holds nothing up: it is tried again when the node starts. */
  async #remove(dir: string): Promise<void> {
    const found = await lstat(dir).catch(() => null);
    if (!found) return;
    // One that was never handed over has nothing in it but ours.
    const handed_over = this.#options.run_as !== null && found.uid === this.#options.run_as.uid;
    const { run_as } = this.#options;
    const why = await removeTree({ ...this.#options, run_as: handed_over ? run_as : null }, dir);
    if (why !== null) this.#options.log.warn({ dir, why }, 'the folder of a step could not be removed');
  }

  async #folder(session_id: string): Promise<string> {
    return join(await agentFolder('steps', this.#options), session_id);
  }
}
