/** Sets the mode of a session: by ACP's modes, or by the option that stands for them. */
import { methods, type NewSessionResponse } from '@agentclientprotocol/sdk';
import type { Agent } from './agent.ts';

/** False when the agent does not offer that mode. */
export async function setMode(agent: Agent, session: NewSessionResponse, mode: string): Promise<boolean> {
  const { sessionId, modes, configOptions } = session;
  if (modes?.availableModes.some(({ id }) => id === mode)) {
    await agent.request(methods.agent.session.setMode, { sessionId, modeId: mode });
    return true;
  }
  const option = configOptions?.find(({ id, category }) => category === 'mode' || id === 'mode');
  if (option?.type !== 'select') return false;
  const values = option.options.flatMap((one) => ('options' in one ? one.options : [one]));
  if (!values.some(({ value }) => value === mode)) return false;
  await agent.request(methods.agent.session.setConfigOption, { sessionId, configId: option.id, value: mode });
  return true;
}
