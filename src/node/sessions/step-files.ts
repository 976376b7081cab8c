/**
 * The input and output of steps. Each session that runs a step gets a folder with its `input` and writes its `output`
 * there. The folder belongs to the agent, so its contents are untrusted: only a regular file is read, up to a limit.
 */
import { chownSync, constants, mkdirSync, writeFileSync } from 'node:fs';
import { lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { removeKnown } from '../../base/files.ts';
import type { Logger } from '../../base/log.ts';
import { Problem } from '../../core/problem.ts';
import { type AgentFolderOptions, agentFolder, openAgentFolder } from '../confinement/agent-folder.ts';
import type { Exec } from '../processes/exec.ts';
import { removeTree } from '../processes/remove-tree.ts';

export interface StepFilesOptions extends AgentFolderOptions {
  exec: Exec;
  log: Logger;
}

/** The file is missing, a link or socket is in its place, or the service may not read it. */
const NO_OUTPUT = ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'EACCES'];

export class StepFiles {
  readonly #options: StepFilesOptions;

  constructor(options: StepFilesOptions) {
    this.#options = options;
  }

  /**
   * Creates the folder with its input, replacing an earlier one. Throws `no_step_folder` if agents could not reach it,
   * or if an earlier folder cannot be removed.
   */
  async make(session_id: string, input: string): Promise<void> {
    await openAgentFolder('steps', this.#options).catch((error: Error) => {
      throw noStepFolder(error.message);
    });
    const dir = await this.#folder(session_id);
    await this.#remove(dir);
    try {
      mkdirSync(dir, { mode: 0o700 });
    } catch (error) {
      const exists = (error as NodeJS.ErrnoException).code === 'EEXIST';
      throw exists ? noStepFolder('an earlier folder cannot be removed') : error;
    }
    const file = join(dir, 'input');
    writeFileSync(file, input, { mode: 0o600 });
    const { run_as } = this.#options;
    if (!run_as) return;
    chownSync(file, run_as.uid, run_as.gid);
    chownSync(dir, run_as.uid, run_as.gid);
  }

  /** The variables with which an agent finds its step's files. */
  async environment(session_id: string): Promise<Record<string, string>> {
    const dir = await this.#folder(session_id);
    return { SVC_STEP_INPUT: join(dir, 'input'), SVC_STEP_OUTPUT: join(dir, 'output') };
  }

  /**
   * The first `max` bytes of the output; null if it is missing, not a regular file, or a link to another user's file.
   */
  async output(session_id: string, max: number): Promise<Uint8Array | null> {
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
    const path = join(await this.#folder(session_id), 'output');
    const file = await open(path, flags).catch((error: NodeJS.ErrnoException) => {
      if (NO_OUTPUT.includes(error.code ?? '')) return null;
      throw error;
    });
    if (!file) return null;
    try {
      const info = await file.stat();
      // Without `run_as`, the file may be a hard link to one that only the service may read.
      const owned_by_agent = info.uid === (this.#options.run_as?.uid ?? info.uid) && info.nlink === 1;
      if (!info.isFile() || !owned_by_agent) return null;
      const bytes = Buffer.alloc(Math.min(info.size, max));
      const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
      return bytes.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  }

  /** Deletes a session's folder. Logs a warning if that fails. Idempotent. */
  async drop(session_id: string): Promise<void> {
    await this.#remove(await this.#folder(session_id));
  }

  /** Deletes the folders of sessions that no longer exist. */
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

  /** An agent can prevent the removal. That must not block anything, so the node tries again when it starts. */
  async #remove(dir: string): Promise<void> {
    const { exec, run_as } = this.#options;
    // Starting `rm` costs 3 ms of processor time. Another user's folder may be a mount that does not answer.
    if (run_as === null && removeKnown(dir, ['input', 'output'])) return;
    const found = await lstat(dir).catch(() => null);
    if (!found) return;
    // A folder that still belongs to the service contains only the service's files.
    const handed_over = run_as !== null && found.uid === run_as.uid;
    const why = await removeTree({ exec, run_as: handed_over ? run_as : null }, dir);
    if (why !== null) this.#options.log.warn({ dir, why }, 'cannot remove the folder of a step');
  }

  async #folder(session_id: string): Promise<string> {
    return join(await agentFolder('steps', this.#options), session_id);
  }
}

function noStepFolder(reason: string): Problem {
  return new Problem('unavailable', 'no_step_folder', `no folder for step data: ${reason}`);
}
