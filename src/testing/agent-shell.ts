/** Runs shell scripts of a test inside an agent's session. */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '../base/async.ts';

/**
 * An agent's command. It runs the scripts `1`, `2`, … in its workdir as they appear, with or without a plane, and exits with
 * code 0 when the file `stop` appears.
 */
export const SHELL = `n=1
while [ ! -e stop ]; do
  if [ -e "$n" ]; then sh "$n" >"$n.out" 2>&1; echo $? >"$n.tmp"; mv "$n.tmp" "$n.exit"; n=$((n + 1)); else sleep 0.1; fi
done`;

/** The time limit for a script. Its error shows the output so far, which the error of a test timeout would not. */
const SCRIPT_MS_MAX = 100_000;

export interface ShellResult {
  /** stdout and stderr, without trailing white space. */
  output: string;
  exit_code: number;
}

export class AgentShell {
  readonly workdir: string;
  #count = 0;

  constructor(workdir: string) {
    this.workdir = workdir;
  }

  /** Starts a script in the agent's session, and returns the path to which its results are written. */
  async start(script: string): Promise<string> {
    const path = join(this.workdir, String(++this.#count));
    await writeFile(`${path}.new`, script);
    await rename(`${path}.new`, path);
    return path;
  }

  /** Runs a script in the agent's session and waits until it exits. Rejects after `SCRIPT_MS_MAX`. */
  async run(script: string): Promise<ShellResult> {
    const path = await this.start(script);
    const until_ms = performance.now() + SCRIPT_MS_MAX;
    for (;;) {
      const exit = await readFile(`${path}.exit`, 'utf8').catch(() => null);
      if (exit !== null)
        return { output: (await readFile(`${path}.out`, 'utf8')).trimEnd(), exit_code: Number(exit) };
      if (performance.now() > until_ms) throw new Error(await this.#describe(path, script));
      await sleep(50);
    }
  }

  async #describe(path: string, script: string): Promise<string> {
    const output = await readFile(`${path}.out`, 'utf8').catch(() => 'nothing; it has not started');
    return `the session has not finished this script in ${SCRIPT_MS_MAX} ms: ${script}\nIt printed: ${output}`;
  }

  async stop(): Promise<void> {
    await writeFile(join(this.workdir, 'stop'), '');
  }
}
