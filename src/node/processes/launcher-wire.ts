/** The messages between a node and its launcher, one JSON line each. */
import type { SessionOwned, TreeRequest } from './process-tree.ts';

export type LauncherRequest = { id: number } & (
  | { op: 'spawn'; argv: [string, ...string[]]; cwd: string; env: Record<string, string> }
  | { op: 'sweep'; trees: TreeRequest[]; owned: SessionOwned[] }
  | {
      op: 'run';
      argv: [string, ...string[]];
      cwd: string;
      env: Record<string, string>;
      /** Base64; null means /dev/null. */
      stdin: string | null;
      output_bytes_max: number;
      timeout_ms: number;
    }
);

/** A `LauncherRequest` without its id. */
export type LauncherTask = LauncherRequest extends infer Request
  ? Request extends LauncherRequest
    ? Omit<Request, 'id'>
    : never
  : never;

export type LauncherAnswer =
  | { id: number; ok: unknown }
  | { id: number; error: { code: string | null; message: string } };

/** A message as one line. `readline` also splits at U+2028 and U+2029, which JSON does not escape. */
export function lineOf(message: object): string {
  const json = JSON.stringify(message).replace(/[\u2028\u2029]/g, (end) =>
    end === '\u2028' ? '\\u2028' : '\\u2029',
  );
  return `${json}\n`;
}
