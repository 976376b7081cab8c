/** Reads the end of a session's stdout from its agent's log. It is the output of a step without an output file. */
import { Problem } from '../../core/problem.ts';
import type { EventLog } from '../../events/log.ts';
import { OutputMissing } from '../../events/output.ts';
import { backwards } from './last-message.ts';
import { limits } from './limits.ts';

export interface LastStdout {
  /** At most `limits.step_stdout_bytes`. */
  bytes: Uint8Array;
  /** Why some of the output may be missing; null if it is complete. */
  missing: string | null;
}

/** The last bytes; none if the log was deleted. */
export async function lastStdout(log: EventLog, agent_id: string, session_id: string): Promise<LastStdout> {
  const parts: Buffer[] = [];
  try {
    const output = await log.output(agent_id, session_id, 'stdout');
    const { size_bytes } = output;
    const from = Math.max(0, size_bytes - limits.step_stdout_bytes);
    for await (const part of output.read(from, size_bytes)) parts.push(part);
  } catch (error) {
    if (error instanceof OutputMissing) {
      return { bytes: await readable(log, agent_id, session_id), missing: error.message };
    }
    // The agent was deleted in the meantime, together with its log.
    if (!(error instanceof Problem) || error.kind !== 'not_found') throw error;
  }
  return { bytes: Buffer.concat(parts), missing: null };
}

/** The last bytes in events that can be read. Events of damaged blocks are left out. */
async function readable(log: EventLog, agent_id: string, session_id: string): Promise<Uint8Array> {
  const parts: Buffer[] = [];
  let bytes = 0;
  let is_found = false;
  for await (const { data, encoding, stream, ...event } of backwards(log, agent_id, 'output')) {
    const is_other = event.session_id !== session_id;
    // Those after the session's events are of later sessions, and those before them of earlier ones.
    if ((is_other && is_found) || bytes >= limits.step_stdout_bytes) break;
    is_found ||= !is_other;
    if (is_other || stream !== 'stdout') continue;
    const part = Buffer.from(String(data), encoding === 'base64' ? 'base64' : 'utf8');
    parts.push(part);
    bytes += part.length;
  }
  return Buffer.concat(parts.reverse()).subarray(-limits.step_stdout_bytes);
}
