/**
 * An elicitation: what an agent asks a person to enter in a form or to open in a browser. Its record (`contract`) does not
 * include what people entered: only the agent gets that.
 *
 *     status     pending ──▶ accepted │ declined │ cancelled │ expired
 *     delivery   queued ──▶ written │ undeliverable   of the answer to the agent
 */
import type { Elicitation } from './contract/elicitations.ts';

export type { Elicitation };
export type ElicitationForm = NonNullable<Elicitation['form']>;
/** `src/acp/elicitation.ts` reads it from the agent's schema and documents the fields. */
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
