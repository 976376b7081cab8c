/**
 * The state of a session that speaks ACP: everything that a plane needs to continue in the middle of a turn. It is stored in
 * a row, in the same transaction as the frames from which it was computed. It contains no conversation text, and every part
 * is bounded.
 */
import type {
  AvailableCommand,
  PlanEntry,
  SessionConfigOption,
  SessionModeState,
  UsageUpdate,
} from '@agentclientprotocol/sdk';
import { type Acting, noObservations } from './acting.ts';
import type { RequestId } from './message.ts';
import type { Subagent } from './subagents.ts';
import { idleWork, type Work } from './v2/work.ts';

/**
 * `starting`: no message yet. `initializing`, `opening`, `authenticating`: waiting for the agent's answer. `ready`: accepts
 * prompts. `auth_required`: someone has to sign in first. `failed`: no communication is possible; the process keeps running.
 *
 *     starting ─▶ initializing ─▶ opening ─▶ ready
 *     initializing, opening ─▶ failed
 *     opening, ready ─▶ auth_required ─▶ authenticating
 *     authenticating ─▶ auth_required (refused), opening (no session yet) or ready
 *     authenticating ─▶ authenticating (another attempt, because the agent does not answer)
 */
export const phases = [
  'starting',
  'initializing',
  'opening',
  'auth_required',
  'authenticating',
  'ready',
  'failed',
] as const;
export type Phase = (typeof phases)[number];

/** An unanswered request from the service. */
export interface SentRequest {
  id: string;
  method: string;
  /** The value that the request sets, for methods whose response does not repeat it. */
  value: string | null;
}

/** An unanswered request from the agent. */
export interface ReceivedRequest {
  /** The number of the request in this session. Together with the session, it identifies the request, whatever `id` is. */
  number: number;
  id: RequestId;
  /** For a permission request: the options that allow the action permanently. */
  always?: string[];
}

export interface Capabilities {
  load: boolean;
  resume: boolean;
  image: boolean;
  audio: boolean;
  embedded_context: boolean;
}

export interface AuthMethod {
  id: string;
  name: string;
  description: string | null;
  type: string;
}

export interface AcpState {
  phase: Phase;
  /** Number of requests from the service so far. */
  asked_count: number;
  /** The service's requests that the agent has not answered. */
  asked: SentRequest[];
  /** Number of requests from the agent so far. */
  received_count: number;
  /** The agent's requests that have not been answered yet. */
  received: ReceivedRequest[];
  /** The negotiated version of ACP; null until the agent has chosen one. */
  protocol_version: number | null;
  agent: { name: string; title: string | null; version: string | null } | null;
  capabilities: Capabilities;
  /** The agent accepts MCP servers that it starts itself. */
  mcp_stdio: boolean;
  auth_methods: AuthMethod[];
  /** The agent's own session id. Not shown to anyone, because it is enough to resume the conversation. */
  acp_session_id: string | null;
  turn: { prompt_id: string } | null;
  /** Used only in sessions with version 2. */
  work: Work;
  modes: SessionModeState | null;
  config_options: SessionConfigOption[];
  commands: AvailableCommand[];
  plan: PlanEntry[];
  usage: Pick<UsageUpdate, 'used' | 'size' | 'cost'> | null;
  title: string | null;
  /** What the agent does or asks: the title of the last tool call, or the message of an elicitation. */
  now: string | null;
  subagents: Subagent[];
  /** Observations from the agent's tool calls since its mode last changed, including those of its sub-agents. */
  acting: Acting;
  /** The current line is too long for a frame and has not ended yet. */
  spilling: boolean;
}

/** What an agent reports about itself and its settings, as clients see it. */
export type AcpConfig = Pick<
  AcpState,
  | 'phase'
  | 'protocol_version'
  | 'agent'
  | 'title'
  | 'modes'
  | 'config_options'
  | 'commands'
  | 'plan'
  | 'usage'
  | 'capabilities'
  | 'auth_methods'
  | 'subagents'
>;

export const initialState: AcpState = {
  phase: 'starting',
  asked_count: 0,
  asked: [],
  received_count: 0,
  received: [],
  protocol_version: null,
  agent: null,
  capabilities: { load: false, resume: false, image: false, audio: false, embedded_context: false },
  mcp_stdio: true,
  auth_methods: [],
  acp_session_id: null,
  turn: null,
  work: idleWork,
  modes: null,
  config_options: [],
  commands: [],
  plan: [],
  usage: null,
  title: null,
  now: null,
  subagents: [],
  acting: noObservations,
  spilling: false,
};
