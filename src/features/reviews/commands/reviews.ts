/** `svc reviews …`: lists, shows and answers permission reviews. */
import type { Command } from 'commander';
import { type Api, type ApiOptions, connect, findAgent } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { failed, usage, withExplanation } from '../../../cli/failure.ts';
import { remote } from '../../../cli/options.ts';
import { print, printJson, printRows, printStatus, supportsColor } from '../../../cli/output.ts';
import { printable } from '../../../cli/terminal.ts';
import type { CallArgs } from '../../../client/client.ts';
import { Problem, problems } from '../../../core/problem.ts';
import { formatTitle, paint } from '../../conversations/commands/acp-lines.ts';
import type { Decision } from '../rules.ts';
import { choiceLines, type ReviewRecord, reviewLines, subagentText, waitText } from './review-lines.ts';

type Options = ApiOptions & { json?: boolean };
type AnswerOptions = Options & { message?: string };
const MESSAGE = 'also send the agent this text as its next prompt';

type Answer = NonNullable<CallArgs<'respondReview'>['body']>;

const SHOW = 'show what the agent wants to do, and the options; without an id, the only pending review';

export function addReviews(program: Command, context: Context): void {
  const { io } = context;
  const reviews = program.command('reviews').description('answer agents that ask for permission');

  remote(reviews, 'ls', 'list pending reviews, newest first')
    .alias('list')
    .option('--all', 'include reviews that are no longer pending')
    .option('--agent <agent>', 'only reviews of one agent')
    .action(async (options: Options & { all?: boolean; agent?: string }) => {
      const api = await connect(context, options);
      const agent_id = options.agent === undefined ? undefined : (await findAgent(api, options.agent)).id;
      const query = { agent_id, ...(!options.all && { status: 'pending' as const }) };
      const rows = await api.all('listReviews', { query });
      const names = options.json ? new Map() : await findAgentNames(api, rows);
      const now = Date.now();
      await printRows(
        io,
        rows,
        [
          { title: 'ID', value: (review) => review.id },
          { title: 'AGENT', value: (review) => names.get(review.agent_id) ?? review.agent_id },
          ...(options.all ? [{ title: 'STATUS', value: (review: ReviewRecord) => review.status }] : []),
          { title: 'WAITS', value: (review) => waitText(review, now) },
          { title: 'WHAT', value: summaryText },
          { title: 'OPTIONS', value: ({ options }) => options.map((option) => option.option_id).join(', ') },
        ],
        options,
      );
      if (io.stdout.isTTY && !options.json)
        for (const line of await otherRequests(api, agent_id).catch(noneIfRefused))
          printStatus(io, printable(line));
    });

  remote(reviews, 'show [review]', SHOW)
    .alias('get')
    .action(async (nonEmptyName: string | undefined, options: Options) => {
      const api = await connect(context, options);
      const review_id = nonEmptyName ?? (await onlyOne(api));
      const review = await api.call('getReview', { params: { review_id } });
      if (options.json) return printJson(io, review);
      const agent = await api.call('getAgent', { params: { agent_id: review.agent_id } });
      const colored = supportsColor(io.stdout, io.env);
      const lines = reviewLines(review, agent, Date.now());
      await print(io, lines.map(({ text, style }) => `${paint(text, style, colored)}\n`).join(''));
    });

  addDecision('allow', 'allow a request once; without an id, the only pending one');
  addDecision('deny', 'deny a request once; without an id, the only pending one');

  remote(reviews, 'respond <review>', 'answer a review with one of its options')
    .option('--option-id <option>', 'the id of the option')
    .option('--cancel', 'choose none of the options')
    .option('--message <text>', MESSAGE)
    .action(async (review_id: string, options: AnswerOptions & { optionId?: string; cancel?: boolean }) => {
      const { optionId, cancel } = options;
      if ((optionId === undefined) === (cancel === undefined))
        throw usage('give either --option-id or --cancel');
      const answer: Answer = optionId === undefined ? { outcome: 'cancelled' } : { option_id: optionId };
      await respond(io, await connect(context, options), review_id, answer, options);
    });

  function addDecision(decision: Decision, description: string): void {
    remote(reviews, `${decision} [review]`, description)
      .option('--message <text>', MESSAGE)
      .action(async (nonEmptyName: string | undefined, options: AnswerOptions) => {
        const api = await connect(context, options);
        await respond(io, api, nonEmptyName ?? (await onlyOne(api)), { decision }, options);
      });
  }
}

async function respond(
  io: Context['io'],
  api: Api,
  review_id: string,
  answer: Answer,
  options: AnswerOptions,
): Promise<void> {
  const { message } = options;
  const body = { ...answer, ...(message !== undefined && { message }) };
  const args = { params: { review_id }, body, idempotency_key: crypto.randomUUID() };
  const codes = [problems.optionIdRequired().code, problems.unknownOption().code];
  const review = await withExplanation(api.call('respondReview', args), codes, async () =>
    choiceLines(await api.call('getReview', { params: { review_id } })),
  );
  if (options.json) return printJson(io, review);
  const chosen = review.options.find(({ option_id }) => option_id === review.option_id)?.name;
  printStatus(io, printable(`${review.id}  ${chosen ?? review.status}: ${formatTitle(review.tool_call)}`));
}

/** The id of the only pending review. Throws an error that lists them if there are several. */
async function onlyOne(api: Api): Promise<string> {
  const waiting = await api.all('listReviews', { query: { status: 'pending' } });
  if (waiting.length === 0) throw failed('no review is pending');
  if (waiting.length === 1) return waiting[0]!.id;
  const names = await findAgentNames(api, waiting);
  const lines = waiting.map(
    ({ id, agent_id, tool_call }) => `${id}  ${names.get(agent_id) ?? agent_id}  ${formatTitle(tool_call)}`,
  );
  throw failed([`${waiting.length} reviews are pending: pass the id of one`, ...lines].join('\n'));
}

/** Names of the agents that ask, by id. */
async function findAgentNames(api: Api, reviews: readonly ReviewRecord[]): Promise<Map<string, string>> {
  if (reviews.length === 0) return new Map();
  return new Map((await api.all('listAgents', {})).map(({ id, name }) => [id, name]));
}

/** Names the sub-agent that asks. */
function summaryText({ subagent, tool_call }: ReviewRecord): string {
  return subagent === null ? formatTitle(tool_call) : `${formatTitle(tool_call)} (${subagentText(subagent)})`;
}

/** What waits for a person besides reviews, with the command that shows it. `agent_id`: only what waits for this agent. */
async function otherRequests(api: Api, agent_id: string | undefined): Promise<string[]> {
  const agents = (await api.all('listAgents', { query: { status: 'running' } })).filter(
    ({ id, needs_you }) => needs_you !== null && (agent_id === undefined || id === agent_id),
  );
  const count = (total: number, noun: string) => `${total} ${total === 1 ? noun : `${noun}s`}`;
  const forms = agents.reduce((sum, agent) => sum + agent.pending_elicitations, 0);
  const waiting = (await api.all('listWaitingSteps', {})).filter(
    (step) => agent_id === undefined || step.agent_id === agent_id,
  );
  const runs = agent_id === undefined ? await api.all('listWaitingRuns', {}) : [];
  return [
    ...(forms > 0 ? [`${count(forms, 'elicitation')} (forms and links): svc elicitations ls`] : []),
    ...(waiting.length > 0 ? [`${count(waiting.length, 'question')} of steps: svc steps waiting`] : []),
    ...runs.map(({ team_name, run_number, run_id, reason }) => {
      const why = reason === '' ? '' : ` (${reason})`;
      return `${team_name}#${run_number} waits${why}: svc runs resume ${run_id}`;
    }),
    ...agents
      .filter(({ needs_you }) => needs_you === 'sign_in')
      .map(({ id, name }) => `${name} needs a sign-in: svc agents config ${id}`),
  ];
}

/** A token may be limited to reviews. */
function noneIfRefused(error: unknown): [] {
  if (error instanceof Problem && error.kind === 'forbidden') return [];
  throw error;
}
