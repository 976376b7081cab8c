/** An elicitation record for tests of views. */
import type { Elicitation, ElicitationField } from '../features/elicitations/rules.ts';
import { time } from './agent-record.ts';

export function elicitationRecord(fields: Partial<Elicitation> = {}): Elicitation {
  return {
    id: 'eli_1',
    agent_id: 'agt_1',
    session_id: 'ses_1',
    team_id: null,
    run_id: null,
    origin_actor_id: null,
    mode: 'form',
    message: 'Where to?',
    form: { title: null, description: null, fields: [] },
    url: null,
    tool_call_id: null,
    status: 'pending',
    answered_by: null,
    delivery: null,
    created_at: time,
    answered_at: null,
    completed_at: null,
    expires_at: null,
    ...fields,
  };
}

export function formField(name: string, fields: Partial<ElicitationField> = {}): ElicitationField {
  const bounds = { min: null, max: null, pattern: null, format: null, default: null };
  const words = { title: null, description: null, required: false };
  return { name, type: 'text', ...words, ...bounds, choices: [], ...fields };
}
