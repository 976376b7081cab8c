/** API of permission reviews: requests of agents, and their answers. Only the first answer counts. */
import { z } from 'zod';
import { bounded, id, list, pageQuery, time } from '../../api/fields.ts';
import { route } from '../../api/route.ts';
import { limits } from '../../base/limits.ts';
import { problems } from '../../core/problem.ts';
import { decisions, deliveries, reviewStatuses, reviewRoutes as routesOfReviews } from './rules.ts';

const reviewRecord = z
  .object({
    id,
    agent_id: id,
    session_id: id,
    team_id: id.nullable(),
    run_id: id.nullable(),
    origin_actor_id: z.string().nullable().meta({ description: 'The member of a team that asks.' }),
    route: z.enum(routesOfReviews),
    routed_to: z.string().nullable(),
    subagent: z
      .object({
        id: z.string(),
        name: z.string().nullable(),
        unknown_session: z.boolean().meta({ description: 'The agent did not announce its session.' }),
      })
      .nullable()
      .meta({ description: 'The sub-agent that asks; null: the agent itself.' }),
    tool_call: z.record(z.string(), z.unknown()).meta({
      description:
        "The tool call, as the agent sent it. If it is too large, or the agent's pending reviews together are, it lacks fields, and `_meta.svc.omitted` names the first of them. The agent's log has the whole request.",
    }),
    options: z
      .array(z.object({ option_id: z.string(), name: z.string(), kind: z.string() }))
      .meta({ description: "The options, unchanged and in the agent's order." }),
    status: z.enum(reviewStatuses),
    decision: z.enum(decisions).nullable(),
    option_id: z.string().nullable(),
    answered_by: z.string().nullable(),
    delivery: z.enum(deliveries).nullable().meta({
      description:
        '`written` once the agent has the answer; `undeliverable` if it no longer waited, or ended.',
    }),
    created_at: time,
    answered_at: time.nullable(),
    expires_at: time.nullable(),
  })
  .meta({ id: 'PermissionReview' });

/** A permission review, as the API returns it. */
export type Review = z.output<typeof reviewRecord>;

const one = '/api/permission-reviews/{review_id}' as const;

export const reviewRoutes = {
  listReviews: route({
    method: 'GET',
    path: '/api/permission-reviews',
    action: 'reviews.list',
    tag: 'Reviews',
    summary: 'List permission reviews, newest first',
    description: `Lists those that the caller may answer. Without \`limit\` and \`cursor\`: the newest ${limits.page_items_max}, and further pending ones up to ${limits.plain_list_items_max} in all; if there are more, \`X-Next-Cursor\` has the cursor of the next page.`,
    query: z.object({
      ...pageQuery,
      status: z.enum(reviewStatuses).optional(),
      agent_id: z.string().optional(),
    }),
    answer_headers: {
      'X-Next-Cursor': 'If a plain array is incomplete: the cursor of the next page.',
    },
    answers: { 200: list(reviewRecord) },
  }),
  getReview: route({
    method: 'GET',
    path: one,
    action: 'review.read',
    tag: 'Reviews',
    summary: 'Get a permission review',
    answers: { 200: reviewRecord },
    errors: ['reviewNotFound'],
  }),
  respondReview: route({
    method: 'POST',
    path: `${one}/respond`,
    action: 'review.answer',
    tag: 'Reviews',
    summary: 'Answer a permission review',
    description:
      '`decision` chooses the one option that allows, or rejects, once. If there is none or more than one, and for permanent decisions, use `option_id`.',
    body: z
      .object({
        decision: z.enum(decisions).optional(),
        option_id: bounded(limits.acp_text_chars_max).optional(),
        outcome: z.literal('cancelled', { error: 'must be cancelled' }).optional(),
        message: bounded(limits.prompt_chars_max)
          .refine((text) => text.trim() !== '', { error: problems.textRequired().message })
          .optional()
          .meta({
            description:
              'Sent as the next prompt, for example to say what to do instead. If the answer comes too late, the message is not sent either.',
          }),
      })
      .refine(
        (body) =>
          (body.outcome === undefined) !== (body.decision === undefined && body.option_id === undefined),
        {
          error: 'must be one of decision, option_id and outcome',
          path: ['decision'],
        },
      ),
    unknown_fields: 'ignored',
    answers: { 200: reviewRecord },
    errors: [
      'reviewNotFound',
      'optionIdRequired',
      'unknownOption',
      'optionMismatch',
      'reviewAnswered',
      'reviewCancelled',
      'stdinLost',
      'agentNotRunning',
      'acpFailed',
      'tooManyPrompts',
    ],
    idempotent: true,
  }),
  routeReview: route({
    method: 'POST',
    path: `${one}/route`,
    action: 'review.answer',
    tag: 'Reviews',
    summary: 'Route a permission review to another actor',
    description:
      'To a person who may answer it (`user:<username>`), or to the leader of its team (`leader`). Everyone who may answer can still do so. The leader of a team is notified by mail. If it does not answer in time, the review goes to all people. A leader that is an agent can answer only with `internal_grpc.enabled`.',
    body: z.object({ to_actor_id: bounded(limits.actor_id_chars_max) }),
    unknown_fields: 'ignored',
    answers: { 200: reviewRecord },
    errors: [
      'reviewNotFound',
      'reviewAnswered',
      'reviewCancelled',
      'notAllowed',
      'workerReviewToWorker',
      'ownReview',
      'leaderCannotAnswer',
    ],
  }),
};
