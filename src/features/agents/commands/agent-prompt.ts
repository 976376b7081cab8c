/** `svc prompt`, and the commands for turns, queued prompts, settings and sign-in of agents that speak ACP. */
import type { Command } from 'commander';
import { readTurnEnd } from '../../../acp/entries.ts';
import { asRecord, toText } from '../../../acp/json.ts';
import {
  type AgentRecord,
  type Api,
  type ApiOptions,
  connect,
  findAgent,
  type TimeLimit,
} from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { exitCodes, Failure, usage, withExplanation, withStartHint } from '../../../cli/failure.ts';
import { collect, remote, withTimeout } from '../../../cli/options.ts';
import { print, printJson, printRecord, printRows, printStatus } from '../../../cli/output.ts';
import { textOrStdin } from '../../../cli/prompt.ts';
import { printable } from '../../../cli/terminal.ts';
import { problems } from '../../../core/problem.ts';
import { blockLines } from '../../conversations/commands/acp-lines.ts';
import { limits } from '../limits.ts';
import { configLines, signInLines, typedOptions } from './agent-config.ts';
import type { Followed } from './follow.ts';
import { deadline, endsSession, type WaitOptions, watch } from './wait.ts';

type Options = ApiOptions & { json?: boolean };

export function addPrompt(program: Command, context: Context): void {
  const { io } = context;
  const prompt = remote(
    program,
    'prompt <agent> <text...>',
    'send a prompt to an agent that speaks ACP (-: read from stdin)',
  ).option('--wait', 'show the conversation until the turn ends; exit code 3 unless it ends normally');
  withTimeout(prompt, 'wait').action(
    async (ref: string, args: string[], options: ApiOptions & WaitOptions & { wait?: boolean }) => {
      const api = await connect(context, options);
      const agent = await findAgent(api, ref);
      const call = {
        params: { agent_id: agent.id },
        body: { text: await textOrStdin(io, args.join(' ')) },
        idempotency_key: crypto.randomUUID(),
      };
      const prompted = await withStartHint(ref, api.call('promptAgent', call));
      if (!options.wait && options.json) return printJson(io, prompted);
      if (prompted.queued) printStatus(io, 'the prompt is queued');
      if (!options.wait) return print(io, `${prompted.prompt_id}\n`);
      const still = `the turn of agent ${agent.id} is still running`;
      const what = { agent_id: agent.id, after: agent.last_seq, still };
      const limit = { at_ms: deadline(options), still };
      const until = endOfTurn(api, agent, prompted.prompt_id, limit);
      const end = await watch(context, api, what, options, until);
      if (end !== 'end_turn') {
        throw new Failure(exitCodes.bad_end, `the turn of agent ${agent.id} ended: ${printable(end)}`);
      }
    },
  );
}

export function addPromptCommands(agents: Command, context: Context): void {
  const { io } = context;

  remote(agents, 'cancel <agent>', "cancel an agent's turn; the agent keeps running").action(
    async (ref: string, options: Options) => {
      const api = await connect(context, options);
      const { id } = await findAgent(api, ref);
      const agent = await api.call('cancelTurn', { params: { agent_id: id } });
      if (options.json) await printRecord(io, agent, options);
      else printStatus(io, `cancelled the turn of ${id}`);
    },
  );

  remote(agents, 'prompts <agent> [text...]', 'list the current prompt and the queued ones')
    .option('--remove <id>', 'remove a queued prompt')
    .option('--edit <id>', 'replace a queued prompt with the text (-: read from stdin)')
    .action(async (ref: string, args: string[], options: Options & { remove?: string; edit?: string }) => {
      const { edit, remove } = options;
      if (edit !== undefined && remove !== undefined) throw usage('give either --edit or --remove');
      if (args.length > 0 !== (edit !== undefined))
        throw usage('--edit needs a text, and a text needs --edit');
      const api = await connect(context, options);
      const { id: agent_id } = await findAgent(api, ref);
      if (edit !== undefined) {
        const body = { text: await textOrStdin(io, args.join(' ')) };
        await api.call('editPrompt', { params: { agent_id, prompt_id: edit }, body });
      }
      if (remove !== undefined) await api.call('deletePrompt', { params: { agent_id, prompt_id: remove } });
      await printRows(
        io,
        await api.call('listPrompts', { params: { agent_id } }),
        [
          { title: 'ID', value: (prompt) => prompt.id },
          { title: 'STATE', value: (prompt) => prompt.state },
          { title: 'CREATED', value: (prompt) => prompt.created_at },
          { title: 'TEXT', value: (prompt) => cut(blockLines(prompt.content).join(' ')) },
        ],
        options,
      );
    });

  remote(agents, 'config <agent>', 'show or set the modes and options of an agent that speaks ACP')
    .option('--mode <id>', 'set the mode')
    .option('--set <option=value>', 'set an option (repeatable)', collect)
    .action(async (ref: string, options: Options & { mode?: string; set?: string[] }) => {
      const api = await connect(context, options);
      const params = { agent_id: (await findAgent(api, ref)).id };
      let config = await api.call('getAgentConfig', { params });
      if (options.mode !== undefined || options.set) {
        const body = {
          ...(options.mode !== undefined && { mode_id: options.mode }),
          ...(options.set && { options: typedOptions(config, options.set) }),
        };
        config = await api.call('setAgentConfig', { params, body });
      }
      if (options.json) return printJson(io, config);
      await print(io, `${configLines(config).join('\n')}\n`);
    });

  remote(agents, 'authenticate <agent> <method>', 'sign in with a method that the agent offers').action(
    async (ref: string, method_id: string, options: Options) => {
      const api = await connect(context, options);
      const params = { agent_id: (await findAgent(api, ref)).id };
      const signed = api.call('authenticateAgent', { params, body: { method_id } });
      const config = await withExplanation(signed, [problems.unknownAuthMethod().code], async () =>
        signInLines(await api.call('getAgentConfig', { params })),
      );
      if (options.json) return printJson(io, config);
      printStatus(io, `the agent is ${config.phase}`);
    },
  );
}

/** Returns why the turn of a prompt ended, with the agent's own reason if it gave one. Null while the turn is open. */
function endOfTurn(api: Api, agent: AgentRecord, prompt_id: string, limit: TimeLimit) {
  const params = { agent_id: agent.id };
  let sent = false;
  let missing_since = Number.POSITIVE_INFINITY;
  return async ({ seq, event }: Followed): Promise<string | null> => {
    if (event === null) {
      if (sent || Number.isFinite(missing_since)) return null;
      // No event reports that a prompt was removed, so this checks the queue between events.
      const open = await api.readWithRetry('listPrompts', { params }, limit);
      if (!open.some(({ id }) => id === prompt_id))
        missing_since = (await api.readWithRetry('getAgent', { params }, limit)).last_seq;
    } else {
      const { type, direction, code } = event;
      const is_sent = type === 'acp_event' && direction === 'to_agent';
      if (is_sent && asRecord(event.payload).id === prompt_id) sent = true;
      const end = readTurnEnd(event, prompt_id);
      if (end !== null) return end.stop_reason ?? (end.failure || 'no reason given');
      if (type === 'error' && code === 'turn_lost' && event.prompt_id === prompt_id) {
        return toText(event.error);
      }
      if (endsSession(agent.session_id, event))
        return `the agent ended${sent ? '' : ' before it received the prompt'}`;
    }
    return seq >= missing_since && !sent ? 'the prompt was removed' : null;
  };
}

function cut(text: string): string {
  return text.length > limits.cli_cell_chars ? `${text.slice(0, limits.cli_cell_chars)}…` : text;
}
