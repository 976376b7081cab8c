/** Translates the service's messages, which are composed in ACP v1, to v2 and back (pure). */
import { type McpServer, AGENT_METHODS as V1 } from '@agentclientprotocol/sdk';
import type { AGENT_METHODS as V2 } from '@agentclientprotocol/sdk/experimental/v2';
import { asRecords, isRecord } from '../json.ts';
import type { Message } from '../message.ts';

const LOGIN = 'auth/login' satisfies (typeof V2)['auth_login'];

export function toV2(message: Message): Message {
  if (message.kind !== 'request' || !isRecord(message.params)) return message;
  const { method, params } = message;
  switch (method) {
    case V1.authenticate:
      return { ...message, method: LOGIN };
    case V1.session_new:
    case V1.session_resume:
      return { ...message, params: { ...params, mcpServers: asRecords(params.mcpServers).map(toServer) } };
    case V1.session_set_config_option: {
      const type = typeof params.value === 'boolean' ? 'boolean' : 'id';
      return { ...message, params: { ...params, type } };
    }
    default:
      return message;
  }
}

/** Translates a request of the service that was read from the log. */
export function fromV2(message: Message): Message {
  const is_login = message.kind === 'request' && message.method === LOGIN;
  return is_login ? { ...message, method: V1.authenticate } : message;
}

/** v2 requires absolute paths of programs. Other programs are started by env(1), which finds them on the agent's PATH. */
function toServer(server: Record<string, unknown>): Record<string, unknown> {
  const { command, args = [] } = server as Extract<McpServer, { command: string }>;
  if (command.startsWith('/')) return { type: 'stdio', ...server };
  return { type: 'stdio', ...server, command: '/usr/bin/env', args: [command, ...args] };
}
