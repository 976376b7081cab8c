/**
 * What is known of a session that speaks ACP: everything that a plane needs to go on in the middle of a turn. It is a row,
 * written in the transaction that takes the frames it follows from; it holds no conversation, and every part is bounded.
 */
import type {
  AvailableCommand,
  PlanEntry,
  SessionConfigOption,
  SessionModeState,
  UsageUpdate,
} from '@agentclientprotocol/sdk';
import { type Acting, nothingObserved } from './acting.ts';
import type { RequestId } from './message.ts';

/**
 * `starting`: nothing was said yet. `initializing`, `opening`, `authenticating`: the agent has to answer. `ready`: takes
 * prompts. `auth_required`: somebody has to sign in first. `failed`: it cannot be talked to; it runs on.
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

/** A request of ours that is not answered. */
export interface Asked {
  id: string;
  method: string;
  /** What it sets, where its answer does not say. */
  value: string | null;
}

/** A request of the agent's that is not answered. */
export interface Asking {
  /** Counts the agent's requests of this session: with the session its identity, whatever `id` says. */
  number: number;
  id: RequestId;
  /** Of a permission request: the options that allow it for good. */
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
  /** Requests of ours so far. */
  asked_count: number;
  asked: Asked[];
  /** Requests of the agent's so far. */
  asking_count: number;
  asking: Asking[];
  agent: { name: string; title: string | null; version: string | null } | null;
  capabilities: Capabilities;
  auth_methods: AuthMethod[];
  /** The agent's own. Whoever has it can resume the conversation: shown to nobody. */
  acp_session_id: string | null;
  turn: { prompt_id: string } | null;
  modes: SessionModeState | null;
  config_options: SessionConfigOption[];
  commands: AvailableCommand[];
  plan: PlanEntry[];
  usage: Pick<UsageUpdate, 'used' | 'size' | 'cost'> | null;
  title: string | null;
  /** What its tool calls show, since its mode last changed. */
  acting: Acting;
  /** An unfinished line that is too long for a frame is going on. */
  spilling: boolean;
}

/** What an agent says of itself and of what can be set, as clients see it. */
export type AcpConfig = Pick<
  AcpState,
  | 'phase'
  | 'agent'
  | 'title'
  | 'modes'
  | 'config_options'
  | 'commands'
  | 'plan'
  | 'usage'
  | 'capabilities'
  | 'auth_methods'
>;

export const beginning: AcpState = {
  phase: 'starting',
  asked_count: 0,
  asked: [],
  asking_count: 0,
  asking: [],
  agent: null,
  capabilities: { load: false, resume: false, image: false, audio: false, embedded_context: false },
  auth_methods: [],
  acp_session_id: null,
  turn: null,
  modes: null,
  config_options: [],
  commands: [],
  plan: [],
  usage: null,
  title: null,
  acting: nothingObserved,
  spilling: false,
};
