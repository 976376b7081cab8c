/** The settings of an agent whose log is so long that the page did not read its beginning, where the agent reported them. */
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { View } from '../../../../acp/transcript/transcript.ts';
import type { Answered } from '../../../api/client.ts';
import { type AgentRecord, agentConfigQuery } from '../../../api/queries.ts';

type Reported = Pick<
  Answered<'getAgentConfig'>,
  'modes' | 'config_options' | 'commands' | 'title' | 'agent' | 'protocol_version'
>;

export function useReportedSettings(agent: AgentRecord, view: View): View {
  const is_known = view.began_before && agent.protocol === 'acp' && agent.status === 'running';
  const { data } = useQuery({ ...agentConfigQuery(agent), enabled: is_known });
  return useMemo(() => (is_known && data ? withReported(view, data) : view), [view, is_known, data]);
}

/** The log is newer, but the part of it that was read may lack settings, or the choices of one. */
export function withReported(view: View, reported: Reported): View {
  const { modes, config_options, commands } = view;
  return {
    ...view,
    modes: withChoices(modes, reported.modes),
    config_options: config_options.length === 0 ? reported.config_options : config_options,
    commands: commands.length === 0 ? reported.commands : commands,
    title: view.title ?? reported.title,
    agent: view.agent ?? reported.agent,
    protocol_version: view.protocol_version ?? reported.protocol_version,
  };
}

function withChoices(modes: View['modes'], reported: View['modes']): View['modes'] {
  if (modes === null || reported === null || modes.availableModes.length > 0) return modes ?? reported;
  return { ...modes, availableModes: reported.availableModes };
}
