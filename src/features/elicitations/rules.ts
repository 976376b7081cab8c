/**
 * An elicitation: an agent's request that a person fill in a form or open a URL in a browser. Its record (`contract`) does not
 * include the person's input, which only the agent receives.
 *
 *     status     pending ──▶ accepted │ declined │ cancelled │ expired
 *     delivery   queued ──▶ written │ undeliverable   (of the answer to the agent)
 */
import type { Elicitation } from './contract/elicitations.ts';

export type { Elicitation };
export type ElicitationForm = NonNullable<Elicitation['form']>;
/** Read from the agent's schema by `src/acp/elicitation.ts`, which documents the fields. */
export type ElicitationField = ElicitationForm['fields'][number];

export const elicitationModes = ['form', 'url'] as const;

export const elicitationStatuses = ['pending', 'accepted', 'declined', 'cancelled', 'expired'] as const;
export type ElicitationStatus = (typeof elicitationStatuses)[number];

export const elicitationActions = ['accept', 'decline', 'cancel'] as const;
export type ElicitationAction = (typeof elicitationActions)[number];

export const statusOf: Record<ElicitationAction, ElicitationStatus> = {
  accept: 'accepted',
  decline: 'declined',
  cancel: 'cancelled',
};

export const formFieldTypes = ['text', 'number', 'integer', 'boolean', 'choice', 'choices'] as const;
export const textFormats = ['email', 'uri', 'date', 'date-time'] as const;
