/** Runs the demo agent on standard input and output until the input ends. */
import { Readable, Writable } from 'node:stream';
import { MessageTooLargeError, ndJsonStream } from '@agentclientprotocol/sdk';
import { version } from '../../base/version.ts';
import { DemoAgent } from './agent.ts';
import type { ModeId } from './offers.ts';
import { Pace } from './pace.ts';
import { SessionFiles } from './session-files.ts';
import type { Membership } from './team-turn.ts';

export interface DemoOptions {
  seed: number;
  /** Speed factor: 1 is pleasant to watch, 2 is twice as fast, 0 does not wait at all. */
  speed: number;
  auth: boolean;
  /** The folder for sessions. */
  state_dir: string;
  /** Initial mode of new sessions. */
  mode: ModeId;
  /** Null: it is not in a team. */
  membership: Membership | null;
}

export interface DemoIo {
  stdin: Readable;
  stdout: Writable;
  stderr: Writable;
  /** Ends the agent. */
  signal: AbortSignal;
}

/** Throws if the input cannot be read any further. */
export async function serveDemo({ speed, state_dir, ...options }: DemoOptions, io: DemoIo): Promise<void> {
  io.stderr.write(
    `svc demo-agent ${version}: a scripted agent that speaks ACP on standard input and output (seed ${options.seed}, speed ${speed})\n`,
  );
  const demo = new DemoAgent({ ...options, pace: new Pace(speed), files: new SessionFiles(state_dir) });
  const stream = ndJsonStream(
    Writable.toWeb(io.stdout),
    Readable.toWeb(io.stdin) as ReadableStream<Uint8Array>,
  );
  const connection = demo.app().connect(stream);
  const close = () => connection.close();
  io.signal.addEventListener('abort', close);
  if (io.signal.aborted) close();
  await connection.closed;
  await demo.idle();
  const { reason } = connection.signal;
  if (reason instanceof MessageTooLargeError) throw reason;
}
