/** Sets the mode of a session: by ACP's modes, or by the option that stands for them. */
import type { NewSessionResponse } from '@agentclientprotocol/sdk';
import { currentMode, modeSetting } from '../acp/modes.ts';
import type { Agent } from './agent.ts';

/** False when the agent does not offer that mode. */
export async function setMode(agent: Agent, session: NewSessionResponse, mode: string): Promise<boolean> {
  const { sessionId, modes, configOptions } = session;
  const offers = { modes: modes ?? null, config_options: configOptions ?? [] };
  const setting = currentMode(offers) === null ? null : modeSetting(offers, mode);
  if (!setting) return false;
  await agent.request(setting.method, { sessionId, ...setting.params } as never);
  return true;
}
