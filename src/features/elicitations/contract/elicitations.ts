/** Elicitations: forms and URLs that agents ask people for. */
import { z } from 'zod';
import { id, list, pageQuery, time } from '../../../api/fields.ts';
import { route } from '../../../api/route.ts';
import { limits } from '../../../base/limits.ts';
import { deliveries } from '../../reviews/rules.ts';
import {
  elicitationActions,
  elicitationModes,
  elicitationStatuses,
  formFieldTypes,
  textFormats,
} from '../rules.ts';

const formField = z
  .object({
    name: z.string().meta({ description: 'The key in `content`.' }),
    type: z
      .enum(formFieldTypes)
      .meta({ description: '`choice`: one of `choices`; `choices`: any number of them.' }),
    title: z.string().nullable(),
    description: z.string().nullable(),
    required: z.boolean(),
    format: z.enum(textFormats).nullable(),
    min: z.number().nullable().meta({
      description: 'Inclusive. Text: length in characters; number: value; `choices`: number of choices.',
    }),
    max: z.number().nullable(),
    pattern: z.string().nullable().meta({ description: 'The agent checks it; the service does not.' }),
    choices: z.array(z.object({ value: z.string(), title: z.string(), description: z.string().nullable() })),
    default: z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]).nullable(),
  })
  .meta({ id: 'ElicitationField' });

const elicitationRecord = z
  .object({
    id,
    agent_id: id,
    session_id: id,
    team_id: id.nullable(),
    run_id: id.nullable(),
    origin_actor_id: z.string().nullable().meta({ description: 'The team member that asks.' }),
    mode: z.enum(elicitationModes),
    message: z.string().meta({ description: "The agent's text." }),
    form: z
      .object({
        title: z.string().nullable(),
        description: z.string().nullable(),
        fields: z.array(formField),
      })
      .nullable()
      .meta({ description: "The agent's form as a list of fields; null for a URL." }),
    url: z.string().nullable().meta({
      description: '`https` or `http`, normalized (ASCII, host in Punycode); null for a form.',
    }),
    tool_call_id: z.string().nullable(),
    status: z.enum(elicitationStatuses),
    answered_by: z.string().nullable(),
    delivery: z.enum(deliveries).nullable().meta({
      description:
        '`written` once the agent has the answer; `undeliverable` if it withdrew the request or ended first.',
    }),
    created_at: time,
    answered_at: time.nullable(),
    completed_at: time
      .nullable()
      .meta({ description: 'When the agent reported that the action behind the URL is done.' }),
    expires_at: time.nullable(),
  })
  .meta({ id: 'Elicitation' });

/** An elicitation, as the API returns it. */
export type Elicitation = z.output<typeof elicitationRecord>;

const one = '/api/elicitations/{elicitation_id}' as const;

export const elicitationRoutes = {
  listElicitations: route({
    method: 'GET',
    path: '/api/elicitations',
    action: 'reviews.list',
    tag: 'Elicitations',
    summary: 'List elicitations, newest first',
    description: `Lists those that the caller may answer. Without \`limit\` and \`cursor\`: the newest ${limits.page_items_max}, and further pending ones up to ${limits.plain_list_items_max} in all; if there are more, \`X-Next-Cursor\` has the cursor of the next page.`,
    query: z.object({
      ...pageQuery,
      status: z.enum(elicitationStatuses).optional(),
      agent_id: z.string().optional(),
    }),
    answer_headers: {
      'X-Next-Cursor': 'If a plain array is incomplete: the cursor of the next page.',
    },
    answers: { 200: list(elicitationRecord) },
  }),
  getElicitation: route({
    method: 'GET',
    path: one,
    action: 'review.read',
    tag: 'Elicitations',
    summary: 'Get an elicitation',
    answers: { 200: elicitationRecord },
    errors: ['elicitationNotFound'],
  }),
  respondElicitation: route({
    method: 'POST',
    path: `${one}/respond`,
    action: 'review.answer',
    tag: 'Elicitations',
    summary: 'Answer an elicitation',
    description:
      '`accept` of a form takes the input in `content`, by field name; it must be valid for the form. The input is sent to the agent and stored nowhere else. `accept` of a URL means that the person agreed to open it. The first answer counts.',
    body: z.object({
      action: z.enum(elicitationActions),
      content: z.record(z.string(), z.unknown()).optional(),
    }),
    unknown_fields: 'ignored',
    answers: { 200: elicitationRecord },
    errors: ['elicitationNotFound', 'elicitationAnswered', 'elicitationCancelled', 'stdinLost'],
    idempotent: true,
  }),
};
