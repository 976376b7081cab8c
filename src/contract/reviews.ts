/** Permission reviews: an agent's questions, and the one answer that counts. */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
import { decisions, deliveries, reviewStatuses, reviewRoutes as routesOfReviews } from '../domain/review.ts';
import { bounded, id, list, pageQuery, time } from './fields.ts';
import { route } from './route.ts';

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
    tool_call: z
      .record(z.string(), z.unknown())
      .meta({ description: 'What it is about, as the agent said it.' }),
    options: z
      .array(z.object({ option_id: z.string(), name: z.string(), kind: z.string() }))
      .meta({ description: "The agent's own words, in its order." }),
    status: z.enum(reviewStatuses),
    decision: z.enum(decisions).nullable(),
    option_id: z.string().nullable(),
    answered_by: z.string().nullable(),
    delivery: z.enum(deliveries).nullable().meta({
      description:
        '`written` once the answer is with the agent; `undeliverable`: it no longer waited, or ended.',
    }),
    created_at: time,
    answered_at: time.nullable(),
    expires_at: time.nullable(),
  })
  .meta({ id: 'PermissionReview' });

const one = '/api/permission-reviews/{review_id}' as const;

export const reviewRoutes = {
  listReviews: route({
    method: 'GET',
    path: '/api/permission-reviews',
    action: 'reviews.list',
    tag: 'Reviews',
    summary: 'Permission reviews, newest first',
    description:
      'What the caller may answer. Without `limit` and `cursor`: all that wait, and the newest 200 of the others.',
    query: z.object({
      ...pageQuery,
      status: z.enum(reviewStatuses).optional(),
      agent_id: z.string().optional(),
    }),
    answers: { 200: list(reviewRecord) },
  }),
  getReview: route({
    method: 'GET',
    path: one,
    action: 'review.read',
    tag: 'Reviews',
    summary: 'One permission review',
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
      '`decision` stands for the one option that allows, or rejects, once. Where there is none or more than one, and for everything lasting, name the option.',
    body: z
      .object({
        decision: z.enum(decisions).optional(),
        option_id: bounded(limits.acp_text_chars_max).optional(),
        outcome: z.literal('cancelled', { error: 'must be cancelled' }).optional(),
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
      'reviewCancelled',
      'stdinLost',
    ],
    idempotent: true,
  }),
  routeReview: route({
    method: 'POST',
    path: `${one}/route`,
    action: 'review.answer',
    tag: 'Reviews',
    summary: 'Put a permission review before somebody',
    description:
      'A human who may answer it (`user:<username>`), or the leader of its team (`leader`); humans who may answer still may. The leader of a team hears of it by mail, and when it does not answer in time the review goes on to all humans.',
    body: z.object({ to_actor_id: bounded(limits.actor_id_chars_max) }),
    unknown_fields: 'ignored',
    answers: { 200: reviewRecord },
    errors: ['reviewNotFound', 'reviewCancelled', 'notAllowed', 'workerReviewToWorker', 'ownReview'],
  }),
};
