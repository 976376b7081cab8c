/** Formats an agent's description of itself and its settings for people, and parses settings that people type (pure). */
import { asRecord, asRecords, asString, type Fields, toText } from '../../../acp/json.ts';
import type { AcpConfig } from '../../../acp/state.ts';
import { PREVIEW_VERSION } from '../../../acp/v2/version.ts';
import { failed } from '../../../cli/failure.ts';
import { parsePair } from '../../../cli/options.ts';
import { joined, planLines } from '../../conversations/commands/acp-lines.ts';

const LABEL_WIDTH = 8;

export function configLines(config: AcpConfig): string[] {
  const { agent, modes, usage, capabilities, protocol_version: version } = config;
  const takes = ['text', 'image', 'audio', 'embedded_context'].filter(
    (kind) => kind === 'text' || capabilities[kind as 'image'],
  );
  return [
    ...labeled('phase', [config.phase]),
    ...labeled('agent', agent ? [joined(agent.title ?? agent.name, agent.version)] : []),
    ...labeled(
      'acp',
      version === null ? [] : [version === PREVIEW_VERSION ? `${version} (preview)` : `${version}`],
    ),
    ...labeled('title', config.title === null ? [] : [joined(config.title)]),
    ...labeled('mode', modes ? [joined(modes.currentModeId, among(modes.availableModes, 'id'))] : []),
    ...labeled('options', asRecords(config.config_options).map(optionLine)),
    ...labeled('commands', asRecords(config.commands).map(commandLine)),
    ...labeled(
      'plan',
      planLines(config.plan).map(({ text }) => text),
    ),
    ...labeled('subagent', config.subagents.map(subagentLine)),
    ...labeled('usage', usage ? [`${usage.used} of ${usage.size} tokens`] : []),
    ...labeled('takes', [takes.join(', ')]),
    ...labeled('sign-in', signInLines(config)),
  ];
}

/** The methods for signing in, with the ids that `authenticate` takes. */
export function signInLines({ auth_methods }: AcpConfig): string[] {
  return auth_methods.map(({ id, name, description }) => joined(id, name, description));
}

/** Parses `id=value` pairs with the types of the agent's options. Throws if the agent has no such option. */
export function typedOptions(config: AcpConfig, pairs: readonly string[]): Record<string, string | boolean> {
  const options = asRecords(config.config_options);
  return Object.fromEntries(
    pairs.map((pair) => {
      const [id, text] = parsePair(pair, '--set');
      const option = options.find((option) => option.id === id);
      if (!option) throw failed(`the agent has no option ${id}: svc agents config shows them`);
      const truth = option.type === 'boolean' && (text === 'true' || text === 'false');
      return [id, truth ? text === 'true' : text];
    }),
  );
}

function subagentLine({
  id,
  name,
  description,
  status,
  stop_reason,
}: AcpConfig['subagents'][number]): string {
  return joined(name ?? id, stop_reason === null ? status : `${status} (${stop_reason})`, description);
}

function labeled(label: string, texts: readonly string[]): string[] {
  return texts.map((text, at) => `${(at === 0 ? label : '').padEnd(LABEL_WIDTH)}  ${text}`);
}

function optionLine(option: Fields): string {
  const groups = asRecords(option.options).flatMap((record) =>
    Array.isArray(record.options) ? asRecords(record.options) : [record],
  );
  const choices = option.type === 'boolean' ? '(true, false)' : among(groups, 'value');
  return joined(`${toText(option.id)} = ${toText(option.currentValue)}`, choices, asString(option.name));
}

function commandLine({ name, description, input }: Fields): string {
  const hint = asString(asRecord(input).hint);
  return joined(`/${toText(name)}${hint === null ? '' : ` <${hint}>`}`, asString(description));
}

function among(choices: unknown, key: string): string {
  const args = asRecords(choices).map((choice) => toText(choice[key]));
  return args.length === 0 ? '' : `(${args.join(', ')})`;
}
