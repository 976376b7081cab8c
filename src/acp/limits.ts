/** Limits of the module `acp`. Names end with their unit. */
import { KIB, MIB } from '../base/limits.ts';

export const limits = {
  /** Size of each list in a session's stored state, such as its open requests. */
  acp_state_list_chars_max: 64 * KIB,
  /** Size of a session's stored state, the sum of the bounds of its parts. */
  acp_state_chars_max: 1 * MIB,
  /** Deepest nesting of an agent's message that is accepted. */
  acp_levels_max: 1_000,
  /** Values in an agent's message; more would take seconds to process. */
  acp_values_max: 200_000,
  /** Open requests of one agent. */
  acp_open_requests_max: 200,
  /** Open tool calls whose state is kept. */
  acting_calls_max: 200,
  /** Stored title of the first tool call without a request. */
  acting_title_chars_max: 200,
  /** Sub-agents of one session. */
  subagents_max: 100,
  /** Longest id of a sub-agent. */
  subagent_id_chars_max: 256,
  /** Longest name of a sub-agent. */
  subagent_text_chars_max: 200,
  /** Names of the fields that are left out of a tool call. */
  omitted_fields_max: 10,
  /** Longest of these names. */
  omitted_field_chars_max: 100,
  /** Options of one permission request. */
  review_options_max: 100,
  /** Longest message of an elicitation. */
  elicitation_message_chars_max: 16 * KIB,
  /** Size of a form's schema. */
  elicitation_form_chars_max: 64 * KIB,
  /** Fields of a form. */
  elicitation_fields_max: 100,
  /** Choices of a field. */
  elicitation_choices_max: 1_000,
  /** Longest URL that an agent can ask to open. */
  elicitation_url_chars_max: 4 * KIB,
} as const;
