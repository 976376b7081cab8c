/** Converts what was recorded to findings (pure): text for people, facts for programs. */
import { type InitializeResponse, type NewSessionResponse, PROTOCOL_VERSION } from '@agentclientprotocol/sdk';
import { limits } from '../limits.ts';
import { type Ending, endingText, type Watch } from './agent.ts';
import type { StdoutFacts } from './frames.ts';
import type { ModelRequest } from './model/server.ts';
import { type Finding, failed, ok, weak } from './report.ts';

export function judgeStart({ protocolVersion, agentInfo, agentCapabilities }: InitializeResponse): Finding {
  const facts = { protocol_version: protocolVersion, capabilities: agentCapabilities ?? {} };
  if (protocolVersion !== PROTOCOL_VERSION) {
    return failed(`speaks ACP version ${protocolVersion}, not ${PROTOCOL_VERSION}`, facts);
  }
  const who = agentInfo ? `${agentInfo.name} ${agentInfo.version}` : 'without a name';
  const session = Object.keys(agentCapabilities?.sessionCapabilities ?? {}).filter(
    (name) => name !== '_meta',
  );
  const kept = [...(agentCapabilities?.loadSession ? ['load'] : []), ...session];
  const sessions = kept.length > 0 ? `sessions: ${kept.join(', ')}` : 'sessions are not kept';
  return ok(`${who}, ACP ${protocolVersion}; ${sessions}`, facts);
}

export function judgeSignIn(needed: boolean, { authMethods }: InitializeResponse): Finding {
  const ways = (authMethods ?? []).map(({ id, name }) => name ?? id);
  const offered = ways.length > 0 ? `methods: ${ways.join(', ')}` : 'no methods';
  return needed
    ? failed(`needed, with the agent's own program (${offered})`, { needed, ways })
    : ok(`not needed (${offered})`, { needed, ways });
}

/** `set`: whether the wanted mode could be set; null if none was requested. */
export function judgeSession(
  { modes, configOptions }: NewSessionResponse,
  wanted: string | null,
  set: boolean | null,
): Finding {
  const facts = {
    modes: modes ?? null,
    config_options: (configOptions ?? []).map(({ id }) => id),
    mode: wanted,
  };
  const offered = modes?.availableModes.map(({ id }) => id).join(', ');
  const mode = modes ? `mode ${modes.currentModeId} of ${offered}` : 'no modes';
  if (set === null) return ok(mode, facts);
  return set ? ok(`${mode}; set to ${wanted}`, facts) : weak(`${mode}; ${wanted} is not offered`, facts);
}

export function judgeTurn({ updates, text, permission_requests }: Watch, stop_reason: string): Finding {
  const facts = {
    stop_reason,
    updates: Object.fromEntries(updates),
    permissions: permission_requests.length,
  };
  const seen = [...updates].map(([kind, count]) => `${count} ${kind}`).join(', ') || 'no updates';
  const detail = `${stop_reason}; ${seen}`;
  if (stop_reason !== 'end_turn') return weak(`${detail}; should be end_turn`, facts);
  return text === '' ? weak(`${detail}; it wrote nothing`, facts) : ok(detail, facts);
}

/** `after_ms`: time since the cancellation, or since the open request was answered. */
export function judgeCancel(stop_reason: string, by_itself: boolean, after_ms: number): Finding {
  const facts = { stop_reason, by_itself, after_ms };
  const how = by_itself ? 'at once' : 'after the request was answered';
  const detail = `${stop_reason} ${how}, ${after_ms} ms`;
  return stop_reason === 'cancelled' ? ok(detail, facts) : weak(`${detail}; should be cancelled`, facts);
}

/** `replayed`: earlier messages arrived as updates; `known`: the next reply showed that it remembers them. */
export function judgeLoad(how: 'load' | 'resume', replayed: boolean, known: boolean): Finding {
  const facts = { how, replayed, known };
  const shown = replayed ? 'the conversation is replayed' : 'nothing is replayed';
  if (known) return ok(`${how}: context kept, ${shown}`, facts);
  return weak(`${how}: opened, ${shown}, but the reply shows that the context is lost`, facts);
}

/** `ending`: null if the signal did not end it in time. */
export function judgeTerm(ending: Ending | null, after_ms: number): Finding {
  if (!ending) return weak(`still running after ${limits.doctor_end_ms / 1000} s: needs KILL`, { ending });
  return ok(`ends after ${after_ms} ms (${endingText(ending)})`, { ending, after_ms });
}

export function judgeOrphans(orphans: { pid: number; command: string }[]): Finding {
  if (orphans.length === 0) return ok('none', { orphans });
  const names = orphans.map(({ pid, command }) => `${pid} ${command}`).join('; ');
  return weak(`${orphans.length} left behind, ended by the doctor: ${names}`, { orphans });
}

export function judgeStdout(facts: StdoutFacts): Finding {
  const warnings = [
    facts.noise_lines > 0 && `${facts.noise_lines} lines that are not messages ("${facts.noise_sample}")`,
    facts.stray_responses > 0 && `${facts.stray_responses} responses to unknown requests`,
    facts.long_lines > 0 && `${facts.long_lines} lines of more than 1 MiB`,
    facts.lost_lines > 0 && `${facts.lost_lines} of them too long to be read`,
    facts.not_offered.length > 0 && `asks for ${facts.not_offered.join(', ')}, which is not offered`,
  ].filter(Boolean);
  const detail = `${facts.frames} messages, the longest line ${facts.longest_line_bytes} bytes`;
  return warnings.length === 0
    ? ok(detail, { ...facts })
    : weak([detail, ...warnings].join('; '), { ...facts });
}

export function judgeModel(requests: readonly ModelRequest[]): Finding {
  const answered = Map.groupBy(
    requests.filter(({ status }) => status === 200),
    ({ shape }) => shape ?? 'other',
  );
  const refused = requests.filter(({ status }) => status !== 200);
  const parts = [
    ...[...answered].map(([shape, those]) => `${those.length} ${shape}`),
    ...new Set(refused.map(({ method, path, status }) => `${method} ${path} refused (${status})`)),
  ];
  const detail = parts.join(', ') || 'no request';
  const spoke = requests.some(({ status, model }) => status === 200 && model !== undefined);
  return spoke ? ok(detail) : weak(`${detail}: it did not use the scripted model`);
}
