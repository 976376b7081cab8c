/** API of conversations with ACP agents: prompts, turns, the agent's settings, and sign-in. */
import type {
  AvailableCommand,
  PlanEntry,
  SessionConfigOption,
  SessionModeState,
} from '@agentclientprotocol/sdk';
import { z } from 'zod';
import { type AcpConfig, phases } from '../../acp/state.ts';
import { subagentStatuses } from '../../acp/subagent-reports.ts';
import { bounded, dictionary, id, pageQuery, shortList, time } from '../../api/fields.ts';
import { route } from '../../api/route.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { agentRecord } from '../agents/contract.ts';
import { limits } from './limits.ts';
import { promptStates } from './rules.ts';

const block = z.looseObject({ type: z.string() }).meta({ description: 'A content block of ACP version 1.' });
const prompting = z
  .object({
    text: bounded(sharedLimits.prompt_chars_max)
      .optional()
      .meta({ description: 'Shorthand for one block of text.' }),
    content: z
      .array(block)
      .min(1, { error: 'must not be empty' })
      .max(limits.prompt_blocks_max, { error: `must have at most ${limits.prompt_blocks_max} entries` })
      .optional(),
  })
  .refine((body) => body.content !== undefined || (body.text ?? '').trim() !== '', {
    error: 'is required',
    path: ['text'],
  })
  .transform(({ text, content }) => content ?? [{ type: 'text', text: text ?? '' }]);

const promptRecord = z
  .object({
    id,
    content: z.array(z.looseObject({ type: z.string() })),
    state: z.enum(promptStates),
    stop_reason: z.string().nullable(),
    created_by: id.nullable(),
    created_at: time,
    sent_at: time.nullable(),
    ended_at: time.nullable(),
  })
  .meta({ id: 'Prompt', description: 'A prompt for an agent; `sent` while its turn is in progress.' });

/** ACP's own objects, unchanged. */
function acp<T>(name: string): z.ZodType<T> {
  const any = z.record(z.string(), z.unknown()).meta({ description: `ACP \`${name}\`.` });
  return any as z.ZodType<unknown> as z.ZodType<T>;
}

const configRecord = z
  .object({
    phase: z
      .enum(phases)
      .meta({ description: 'State of the conversation; in `ready`, the agent accepts prompts.' }),
    protocol_version: z
      .int()
      .nullable()
      .meta({ description: 'The ACP version in use; null until the agent has chosen one.' }),
    agent: z
      .object({ name: z.string(), title: z.string().nullable(), version: z.string().nullable() })
      .nullable(),
    title: z.string().nullable(),
    modes: acp<SessionModeState>('SessionModeState').nullable(),
    config_options: z.array(acp<SessionConfigOption>('SessionConfigOption')),
    commands: z.array(acp<AvailableCommand>('AvailableCommand')),
    plan: z.array(acp<PlanEntry>('PlanEntry')).meta({ description: 'The latest plan.' }),
    usage: acp<AcpConfig['usage']>('UsageUpdate')
      .nullable()
      .meta({ description: 'The latest usage report.' }),
    subagents: z
      .array(
        z.object({
          id: z.string().meta({ description: 'Identifies it in events and reviews.' }),
          has_session: z.boolean().meta({
            description:
              'Whether it has its own session; if not, its id is that of the tool call that launched it.',
          }),
          parent_id: z
            .string()
            .nullable()
            .meta({ description: 'The sub-agent that launched it; null: the agent.' }),
          name: z.string().nullable(),
          description: z.string().nullable(),
          status: z.enum(subagentStatuses),
          stop_reason: z.string().nullable(),
        }),
      )
      .meta({ description: 'Sub-agents that the agent reports; at most the newest 100.' }),
    capabilities: z.object({
      load: z.boolean(),
      resume: z.boolean(),
      image: z.boolean(),
      audio: z.boolean(),
      embedded_context: z.boolean(),
    }),
    auth_methods: z.array(
      z.object({
        id: z.string(),
        name: z.string(),
        description: z.string().nullable(),
        type: z.string(),
      }),
    ),
  })
  .meta({ id: 'AgentConfig', description: 'What an agent reports about itself and its settings.' });

const one = '/api/agents/{agent_id}' as const;

export const conversationRoutes = {
  promptAgent: route({
    method: 'POST',
    path: `${one}/prompt`,
    action: 'agent.drive',
    tag: 'Conversations',
    summary: 'Send a prompt to an agent that speaks ACP',
    description: 'Starts a turn, or waits for the current one.',
    body: prompting,
    unknown_fields: 'ignored',
    answers: { 200: z.object({ prompt_id: id, queued: z.boolean() }).meta({ id: 'Prompted' }) },
    errors: ['agentNotFound', 'agentNotRunning', 'agentNotAcp', 'stdinLost', 'acpFailed', 'tooManyPrompts'],
    idempotent: true,
  }),
  listPrompts: route({
    method: 'GET',
    path: `${one}/prompts`,
    action: 'agent.read',
    tag: 'Conversations',
    summary: 'List the current prompt and the queued prompts, in order',
    query: z.object(pageQuery),
    answers: { 200: shortList(promptRecord) },
    errors: ['agentNotFound'],
  }),
  getPrompt: route({
    method: 'GET',
    path: `${one}/prompts/{prompt_id}`,
    action: 'agent.read',
    tag: 'Conversations',
    summary: 'Get a prompt, even if its turn is over',
    answers: { 200: promptRecord },
    errors: ['agentNotFound', 'promptNotFound'],
  }),
  editPrompt: route({
    method: 'PATCH',
    path: `${one}/prompts/{prompt_id}`,
    action: 'agent.drive',
    tag: 'Conversations',
    summary: 'Change a queued prompt',
    body: prompting,
    unknown_fields: 'ignored',
    answers: { 200: promptRecord },
    errors: ['agentNotFound', 'promptNotFound', 'promptSent'],
  }),
  deletePrompt: route({
    method: 'DELETE',
    path: `${one}/prompts/{prompt_id}`,
    action: 'agent.drive',
    tag: 'Conversations',
    summary: 'Withdraw a queued prompt',
    answers: { 204: null },
    errors: ['agentNotFound', 'promptNotFound', 'promptSent'],
  }),
  cancelTurn: route({
    method: 'POST',
    path: `${one}/cancel`,
    action: 'agent.drive',
    tag: 'Conversations',
    summary: "Cancel an agent's turn without stopping the agent",
    description:
      'Its pending reviews are answered with `cancelled` first. If the turn continues anyway, an `error` event `cancel_ignored` reports it.',
    body: z.object({
      prompt_id: id.nullable().optional().meta({
        description:
          'Cancels only the turn of this prompt; null: only work that no prompt began. If something else runs, the answer is 409 (`no_turn`).',
      }),
    }),
    unknown_fields: 'ignored',
    answers: { 200: agentRecord },
    errors: ['agentNotFound', 'agentNotRunning', 'agentNotAcp', 'stdinLost', 'noTurn'],
  }),
  getAgentConfig: route({
    method: 'GET',
    path: `${one}/config`,
    action: 'agent.read',
    tag: 'Conversations',
    summary: 'Get the modes, options, commands, plan and usage that the agent reported',
    answers: { 200: configRecord },
    errors: ['agentNotFound', 'agentNotAcp', 'agentNotRunning'],
  }),
  setAgentConfig: route({
    method: 'PATCH',
    path: `${one}/config`,
    action: 'agent.drive',
    tag: 'Conversations',
    summary: "Set an agent's mode and options",
    description: 'Waits for the agent’s answer; 409 with its message if it refuses.',
    body: z.object({
      mode_id: bounded(sharedLimits.acp_text_chars_max).optional(),
      options: dictionary(
        bounded(sharedLimits.acp_text_chars_max),
        z.union([bounded(sharedLimits.acp_text_chars_max), z.boolean()]),
        sharedLimits.acp_items_max,
      )
        .optional()
        .meta({ description: 'Values by option id.' }),
    }),
    unknown_fields: 'ignored',
    answers: { 200: configRecord },
    errors: ['agentNotFound', 'agentNotAcp', 'agentNotRunning', 'acpNotReady', 'acpSilent'],
  }),
  authenticateAgent: route({
    method: 'POST',
    path: `${one}/authenticate`,
    action: 'agent.drive',
    tag: 'Conversations',
    summary: 'Sign in with one of the methods that the agent offers',
    body: z.object({ method_id: bounded(sharedLimits.acp_text_chars_max) }),
    unknown_fields: 'ignored',
    answers: { 200: configRecord },
    errors: ['agentNotFound', 'agentNotAcp', 'agentNotRunning', 'noSignIn', 'unknownAuthMethod', 'acpSilent'],
    idempotent: true,
  }),
};
