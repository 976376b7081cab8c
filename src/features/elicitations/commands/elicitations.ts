/** `svc elicitations …`: forms that agents ask people to fill in, URLs that they ask people to open, and the answers. */
import type { Command } from 'commander';
import { type Api, type ApiOptions, connect, findAgent } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { failed, usage, withExplanation } from '../../../cli/failure.ts';
import { collect, parsePair, remote } from '../../../cli/options.ts';
import { print, printJson, printRows, printStatus, supportsColor } from '../../../cli/output.ts';
import { printable } from '../../../cli/terminal.ts';
import type { CallArgs } from '../../../client/client.ts';
import { paint } from '../../conversations/commands/acp-lines.ts';
import { waitText } from '../../reviews/commands/review-lines.ts';
import type { ElicitationField } from '../rules.ts';
import { type ElicitationRecord, elicitationLines, fieldHelp, formatSummary } from './elicitation-lines.ts';

type Options = ApiOptions & { json?: boolean };
type Answer = NonNullable<CallArgs<'respondElicitation'>['body']>;

export function addElicitations(program: Command, context: Context): void {
  const group = program
    .command('elicitations')
    .description('answer agents that ask you to fill in a form or open a URL');
  addLs(group, context);
  addShow(group, context);
  addAnswer(group, context);
  addRefusal(group, context, 'decline', 'decline a request; without an id, the only pending one');
  addRefusal(
    group,
    context,
    'cancel',
    'dismiss a request without answering it; without an id, the only pending one',
  );
}

function addLs(group: Command, context: Context): void {
  const { io } = context;
  remote(group, 'ls', 'list pending elicitations, newest first')
    .alias('list')
    .option('--all', 'include elicitations that are no longer pending')
    .option('--agent <agent>', 'only elicitations of one agent')
    .action(async (options: Options & { all?: boolean; agent?: string }) => {
      const api = await connect(context, options);
      const agent_id = options.agent === undefined ? undefined : (await findAgent(api, options.agent)).id;
      const query = { agent_id, ...(!options.all && { status: 'pending' as const }) };
      const rows = await api.all('listElicitations', { query });
      const names = options.json ? new Map() : await findAgentNames(api, rows);
      const now = Date.now();
      await printRows(
        io,
        rows,
        [
          { title: 'ID', value: (row) => row.id },
          { title: 'AGENT', value: (row) => names.get(row.agent_id) ?? row.agent_id },
          ...(options.all ? [{ title: 'STATUS', value: (row: ElicitationRecord) => row.status }] : []),
          { title: 'WAITS', value: (row) => waitText(row, now) },
          { title: 'MODE', value: (row) => row.mode },
          { title: 'WHAT', value: formatSummary },
        ],
        options,
      );
    });
}

function addShow(group: Command, context: Context): void {
  const { io } = context;
  remote(group, 'show [elicitation]', 'show the whole form or URL; without an id, the only pending one')
    .alias('get')
    .action(async (ref: string | undefined, options: Options) => {
      const api = await connect(context, options);
      const elicitation_id = ref ?? (await onlyOne(api));
      const elicitation = await api.call('getElicitation', { params: { elicitation_id } });
      if (options.json) return printJson(io, elicitation);
      const agent = await api.call('getAgent', { params: { agent_id: elicitation.agent_id } });
      const colored = supportsColor(io.stdout, io.env);
      const lines = elicitationLines(elicitation, agent, Date.now());
      await print(io, lines.map(({ text, style }) => `${paint(text, style, colored)}\n`).join(''));
    });
}

function addAnswer(group: Command, context: Context): void {
  const accept = 'send what you enter, or agree to open the URL; without an id, the only pending one';
  remote(group, 'answer [elicitation]', accept)
    .option(
      '--set <name=value>',
      'a field of the form (repeatable); fields that you do not set keep their default',
      collect,
    )
    .option('--content <json>', 'all fields as one JSON object, without defaults')
    .action(async (ref: string | undefined, options: Options & { set?: string[]; content?: string }) => {
      if (options.set && options.content !== undefined) throw usage('give either --set or --content');
      const api = await connect(context, options);
      const elicitation_id = ref ?? (await onlyOne(api));
      const { form } = await api.call('getElicitation', { params: { elicitation_id } });
      const entered = options.set ?? options.content;
      if (form === null && entered !== undefined) throw usage('a URL takes neither --set nor --content');
      const content =
        options.content === undefined
          ? form && buildContent(form.fields, options.set ?? [])
          : parseObject(options.content);
      await respond(context, api, elicitation_id, { action: 'accept', ...(content && { content }) }, options);
    });
}

function addRefusal(
  group: Command,
  context: Context,
  action: 'decline' | 'cancel',
  description: string,
): void {
  remote(group, `${action} [elicitation]`, description).action(
    async (ref: string | undefined, options: Options) => {
      const api = await connect(context, options);
      await respond(context, api, ref ?? (await onlyOne(api)), { action }, options);
    },
  );
}

async function respond(
  context: Context,
  api: Api,
  elicitation_id: string,
  body: Answer,
  options: Options,
): Promise<void> {
  const { io } = context;
  const args = { params: { elicitation_id }, body, idempotency_key: crypto.randomUUID() };
  const answered = await withExplanation(
    api.call('respondElicitation', args),
    ['invalid_request'],
    async () => fieldHelp(await api.call('getElicitation', { params: { elicitation_id } })),
  );
  if (options.json) return printJson(io, answered);
  const sent = body.content ? [`  sent: ${JSON.stringify(body.content)}`] : [];
  const open = body.action === 'accept' && answered.url !== null ? [`  open: ${answered.url}`] : [];
  const head = `${answered.id}  ${answered.status}: ${formatSummary(answered)}`;
  for (const line of [head, ...sent, ...open]) printStatus(io, printable(line));
}

/**
 * Converts values to the types of their fields. A value that does not fit stays a string, and the plane reports the error.
 */
export function buildContent(
  fields: readonly ElicitationField[],
  pairs: readonly string[],
): Record<string, unknown> {
  const content = new Map<string, unknown>(
    fields.flatMap(({ name, default: preset }) => (preset === null ? [] : [[name, preset]])),
  );
  const set = new Set<string>();
  for (const pair of pairs) {
    const [name, text] = parsePair(pair, '--set');
    const field = fields.find((field) => field.name === name);
    const again = set.has(name);
    set.add(name);
    if (field?.type === 'choices') {
      content.set(name, again ? [...(content.get(name) as string[]), text] : text === '' ? [] : [text]);
    } else if (again) throw usage(`--set ${name} may be given only once`);
    else content.set(name, typedValue(field?.type, text));
  }
  return Object.fromEntries(content);
}

function typedValue(type: ElicitationField['type'] | undefined, text: string): unknown {
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  const is_number = (type === 'number' || type === 'integer') && text.trim() !== '';
  return is_number && Number.isFinite(Number(text)) ? Number(text) : text;
}

function parseObject(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch {
    // An error is reported below.
  }
  throw usage('--content must be a JSON object');
}

/** The id of the only pending elicitation. If there are several, throws an error that lists them. */
async function onlyOne(api: Api): Promise<string> {
  const waiting = await api.all('listElicitations', { query: { status: 'pending' } });
  if (waiting.length === 0) throw failed('no elicitation is pending');
  if (waiting.length === 1) return waiting[0]!.id;
  const names = await findAgentNames(api, waiting);
  const lines = waiting.map(
    (item) => `${item.id}  ${names.get(item.agent_id) ?? item.agent_id}  ${formatSummary(item)}`,
  );
  throw failed([`${waiting.length} elicitations are pending: pass the id of one`, ...lines].join('\n'));
}

/** Names of the agents that ask, by id. */
async function findAgentNames(api: Api, rows: readonly ElicitationRecord[]): Promise<Map<string, string>> {
  if (rows.length === 0) return new Map();
  return new Map((await api.all('listAgents', {})).map(({ id, name }) => [id, name]));
}
