/** Sets the mode of a session, with ACP's modes or with the session option that represents them. */
import type { NewSessionResponse } from '@agentclientprotocol/sdk';
import { currentMode, findModeRequest } from '../../acp/modes.ts';
import type { Agent } from './agent.ts';

/** False if the agent does not offer that mode. */
export async function setMode(agent: Agent, session: NewSessionResponse, mode: string): Promise<boolean> {
  const { sessionId, modes, configOptions } = session;
  const offers = { modes: modes ?? null, config_options: configOptions ?? [] };
  const setting = currentMode(offers) === null ? null : findModeRequest(offers, mode);
  if (!setting) return false;
  await agent.request(setting.method, { sessionId, ...setting.params } as never);
  return true;
}
