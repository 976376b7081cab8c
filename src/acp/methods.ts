/** The names of ACP's methods. Only types, so that the CLI and the web UI need not load the SDK. */
import type { AGENT_METHODS, CLIENT_METHODS, PROTOCOL_METHODS } from '@agentclientprotocol/sdk';
import type { AGENT_METHODS as V2 } from '@agentclientprotocol/sdk/experimental/v2';

/** Requests and notifications to the agent. */
export type AgentMethod = (typeof AGENT_METHODS)[keyof typeof AGENT_METHODS] | (typeof V2)['auth_login'];

/** Requests and notifications of the agent. */
export type ClientMethod =
  | (typeof CLIENT_METHODS)[keyof typeof CLIENT_METHODS]
  | (typeof PROTOCOL_METHODS)[keyof typeof PROTOCOL_METHODS];
