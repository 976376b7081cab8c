/** Talking with agents that speak ACP: prompts, turns, their own settings, and signing in. */
import type {
  AvailableCommand,
  PlanEntry,
  SessionConfigOption,
  SessionModeState,
} from '@agentclientprotocol/sdk';
import { z } from 'zod';
import { type AcpConfig, phases } from '../acp/state.ts';
import { limits } from '../base/limits.ts';
import { promptStates } from '../domain/prompt.ts';
import { agentRecord } from './agents.ts';
import { bounded, id, time } from './fields.ts';
import { route } from './route.ts';

const block = z.looseObject({ type: z.string() }).meta({ description: 'A content block of ACP version 1.' });
const prompting = z
  .object({
    text: bounded(limits.prompt_chars_max).optional().meta({ description: 'Short for one block of text.' }),
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
  .meta({ id: 'Prompt', description: 'What is said to an agent; `sent` while its turn goes on.' });

/** ACP's own objects, as the agent said them. */
function acp<T>(name: string): z.ZodType<T> {
  const any = z.record(z.string(), z.unknown()).meta({ description: `ACP \`${name}\`.` });
  return any as z.ZodType<unknown> as z.ZodType<T>;
}

const configRecord = z
  .object({
    phase: z.enum(phases).meta({ description: 'How far the conversation is; `ready` takes prompts.' }),
    agent: z
      .object({ name: z.string(), title: z.string().nullable(), version: z.string().nullable() })
      .nullable(),
    title: z.string().nullable(),
    modes: acp<SessionModeState>('SessionModeState').nullable(),
    config_options: z.array(acp<SessionConfigOption>('SessionConfigOption')),
    commands: z.array(acp<AvailableCommand>('AvailableCommand')),
    plan: z.array(acp<PlanEntry>('PlanEntry')).meta({ description: 'The last that was told.' }),
    usage: acp<AcpConfig['usage']>('UsageUpdate').nullable().meta({ description: 'The last that was told.' }),
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
  .meta({ id: 'AgentConfig', description: 'What an agent says of itself and of what can be set.' });

const one = '/api/agents/{agent_id}' as const;

export const conversationRoutes = {
  promptAgent: route({
    method: 'POST',
    path: `${one}/prompt`,
    action: 'agent.drive',
    tag: 'Conversations',
    summary: 'Say something to an agent that speaks ACP',
    description: 'Begins a turn, or waits for the one that goes on.',
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
    summary: 'The prompt whose turn goes on, and those that wait, in order',
    answers: { 200: z.array(promptRecord) },
    errors: ['agentNotFound'],
  }),
  getPrompt: route({
    method: 'GET',
    path: `${one}/prompts/{prompt_id}`,
    action: 'agent.read',
    tag: 'Conversations',
    summary: 'One prompt, also one whose turn is over',
    answers: { 200: promptRecord },
    errors: ['agentNotFound', 'promptNotFound'],
  }),
  editPrompt: route({
    method: 'PATCH',
    path: `${one}/prompts/{prompt_id}`,
    action: 'agent.drive',
    tag: 'Conversations',
    summary: 'Change a prompt that waits',
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
    summary: 'Take back a prompt that waits',
    answers: { 204: null },
    errors: ['agentNotFound', 'promptNotFound', 'promptSent'],
  }),
  cancelTurn: route({
    method: 'POST',
    path: `${one}/cancel`,
    action: 'agent.drive',
    tag: 'Conversations',
    summary: "End an agent's turn, not the agent",
    description:
      'Its pending reviews are answered `cancelled` first. A turn that goes on all the same is told by an `error` event `cancel_ignored`.',
    answers: { 200: agentRecord },
    errors: ['agentNotFound', 'agentNotRunning', 'agentNotAcp', 'stdinLost', 'noTurn'],
  }),
  getAgentConfig: route({
    method: 'GET',
    path: `${one}/config`,
    action: 'agent.read',
    tag: 'Conversations',
    summary: 'Modes, options, commands, plan and usage, as the agent said them',
    answers: { 200: configRecord },
    errors: ['agentNotFound', 'agentNotAcp', 'agentNotRunning'],
  }),
  setAgentConfig: route({
    method: 'PATCH',
    path: `${one}/config`,
    action: 'agent.drive',
    tag: 'Conversations',
    summary: "Set an agent's mode and options",
    description: 'Waits for the agent’s answer; 409 with its own words when it refuses.',
    body: z.object({
      mode_id: bounded(limits.acp_text_chars_max).optional(),
      options: z
        .record(
          bounded(limits.acp_text_chars_max),
          z.union([bounded(limits.acp_text_chars_max), z.boolean()]),
        )
        .optional()
        .meta({ description: 'By the id of the option.' }),
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
    summary: 'Sign in by one of the methods that the agent offers',
    body: z.object({ method_id: bounded(limits.acp_text_chars_max) }),
    unknown_fields: 'ignored',
    answers: { 200: configRecord },
    errors: ['agentNotFound', 'agentNotAcp', 'agentNotRunning', 'noSignIn', 'unknownAuthMethod', 'acpSilent'],
  }),
};
