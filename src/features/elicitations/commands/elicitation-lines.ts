/** Shows an elicitation to people before they answer (pure): the whole form, or the whole URL with its host. */

import type { AgentRecord, Api } from '../../../cli/api.ts';
import { printable, printableLines } from '../../../cli/terminal.ts';
import { joined, type Line } from '../../conversations/commands/acp-lines.ts';
import { waitText } from '../../reviews/commands/review-lines.ts';

export type ElicitationRecord = Awaited<ReturnType<typeof Api.prototype.call<'getElicitation'>>>;
type Field = NonNullable<ElicitationRecord['form']>['fields'][number];

export function elicitationLines(elicitation: ElicitationRecord, agent: AgentRecord, now_ms: number): Line[] {
  const { id, status, answered_by, delivery, message, form, url, completed_at } = elicitation;
  const answer = [answered_by && `by ${answered_by}`, delivery].filter(Boolean).join(', ');
  return [
    { text: joined(id, status, answer, completed_at && 'complete'), style: 'bold' },
    { text: joined('agent  ', agent.name, agent.id) },
    { text: joined('folder ', agent.workdir, agent.node_id) },
    { text: joined('waits  ', waitText(elicitation, now_ms)) },
    ...labeled('asks', message, 'yellow'),
    ...(url === null ? [] : urlLines(url)),
    ...(form === null ? [] : labeled('form', [form.title, form.description].filter(Boolean).join('\n'))),
    ...(form?.fields ?? []).flatMap(fieldLines),
    ...(status === 'pending' ? commandLines(elicitation) : []),
  ];
}

/** A one-line summary of the request. */
export function formatSummary({ message, mode, url }: ElicitationRecord): string {
  return message || (mode === 'form' ? 'a form' : url!);
}

/** The commands that answer the elicitation. */
export function elicitationCommands({ id, form }: ElicitationRecord): string[] {
  const fields = form?.fields ?? [];
  const required = fields.filter((field) => field.required);
  const named = required.length > 0 ? required : fields.slice(0, 1);
  // An agent's field name must not become part of a command that someone pastes.
  const sets = named.every(({ name }) => /^[\w.-]+$/.test(name))
    ? named.map(({ name }) => ` --set ${name}=<value>`).join('')
    : ' --content <json>';
  return [
    `svc elicitations answer ${id}${sets}`,
    `svc elicitations decline ${id}`,
    `svc elicitations cancel ${id}`,
  ];
}

/** The fields and how to set them, shown when an answer is rejected. */
export function fieldHelp(elicitation: ElicitationRecord): string[] {
  return [
    ...(elicitation.form?.fields ?? []).flatMap(fieldLines),
    ...commandLines(elicitation).slice(0, 1),
  ].map(({ text }) => text);
}

function commandLines(elicitation: ElicitationRecord): Line[] {
  return elicitationCommands(elicitation).map((text) => ({ text, style: 'dim' }));
}

function urlLines(url: string): Line[] {
  return [{ text: joined('host   ', new URL(url).host), style: 'bold' }, { text: joined('url    ', url) }];
}

function labeled(label: string, text: string, style?: Line['style']): Line[] {
  if (text === '') return [];
  const indent = ' '.repeat(9);
  return printableLines(text)
    .split('\n')
    .map((line, at) => ({ text: `${at === 0 ? label.padEnd(9) : indent}${line}`, ...(style && { style }) }));
}

function fieldLines(field: Field): Line[] {
  const { name, title, description, required, choices } = field;
  return [
    { text: `  ${joined(name, title === name ? null : title)}`, style: 'cyan' },
    { text: `    ${[required ? 'required' : 'optional', ...formatRules(field)].join(', ')}` },
    ...(description ? printableLines(description).split('\n') : []).map((text) => ({
      text: `    ${text}`,
    })),
    ...choices.map((choice) => ({
      text: `    [${printable(choice.value)}]  ${joined(choice.title === choice.value ? null : choice.title, choice.description)}`.trimEnd(),
    })),
  ];
}

const types: Record<Field['type'], string> = {
  text: 'text',
  number: 'number',
  integer: 'integer',
  boolean: 'true or false',
  choice: 'one of',
  choices: 'any of (repeat --set)',
};

function formatRules({ type, format, min, max, pattern, default: preset }: Field): string[] {
  const unit = type === 'text' ? ' characters' : type === 'choices' ? ' entries' : '';
  return [
    ...(preset === null ? [] : [`default ${printable(JSON.stringify(preset))}`]),
    ...(min === null ? [] : [`at least ${min}${unit}`]),
    ...(max === null ? [] : [`at most ${max}${unit}`]),
    ...(pattern === null ? [] : [`pattern ${printable(pattern)} (the agent checks it)`]),
    format ?? types[type],
  ];
}
