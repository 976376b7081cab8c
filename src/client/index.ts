/** The public entry of the client: `import { Client } from '@svc-orchestrator/svc/client'`. */
export { Problem } from '../core/problem.ts';
export {
  type CallArgs,
  Client,
  type ClientOptions,
  type FollowOptions,
  type Frame,
  type StreamState,
  Unreachable,
} from './client.ts';
