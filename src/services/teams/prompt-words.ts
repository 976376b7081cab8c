/**
 * What agents that speak ACP are told of their team and of their steps: pure text, one minute to read. Who reads it knows
 * nothing yet; whoever began it may have written parts of it, so it says where those begin and end.
 */
import { limits } from '../../base/limits.ts';
import type { Member, TeamSpec } from '../../domain/team.ts';
import type { RoundInput, StepInput } from './step-data.ts';

export interface Welcomed {
  team_name: string;
  spec: TeamSpec;
  member: Member;
}

/** The first words to an agent: who it is, with whom it works, and how it talks to them. */
export function welcome({ team_name, spec, member }: Welcomed): string {
  const { member_id, prompt, description } = member;
  const role = roleOf(spec, member_id);
  return [
    `You are ${member_id}, ${role === 'leader' ? 'the leader' : 'a worker'} of the team "${team_name}".`,
    ...(description ? [description] : []),
    ...(prompt ? [prompt] : []),
    ['The team:', ...spec.members.map((one) => rosterLine(spec, one))].join('\n'),
    ['You talk to the team by commands in your shell:', ...commands(role)].join('\n'),
  ].join('\n\n');
}

/** One step, for one turn. */
export function stepWords(
  step_key: string,
  prompt: string,
  { run_input, input, needs, answer }: StepInput,
): string {
  const outputs = Object.entries(needs);
  const needed = outputs.map(([key, output]) =>
    section(`Output of step ${key}`, output, share(outputs.length)),
  );
  return [
    `Your step is "${step_key}".`,
    ...(prompt ? [prompt] : []),
    ...(isNothing(input) ? [] : [section('Input of the step', input, limits.step_prompt_input_chars)]),
    ...(isNothing(run_input) ? [] : [section('Input of the run', run_input, limits.step_prompt_input_chars)]),
    ...needed,
    ...(answer === undefined
      ? []
      : [section('Answer to what you asked', answer, limits.step_prompt_input_chars)]),
    'When you end your turn the step is completed, and your last message is its output.',
  ].join('\n\n');
}

/** One round of a leader, for one turn. */
export function roundWords({ run_input, about, steps }: RoundInput): string {
  const told = [section('Input of the run', run_input, limits.step_prompt_input_chars)];
  if (about === 'plan') {
    told.push(
      [
        'Plan the work. Add one step for each piece of it, for whichever member fits, and then end your turn:',
        '  svc actor step-add --step-key <key> --member <member> --prompt <what to do> [--depends-on <key> …]',
        'Steps that do not depend on each other are taken side by side. You are asked again when all are over.',
        'If nothing needs to be handed out, do it yourself: your last message is then the result of the run.',
      ].join('\n'),
    );
  } else {
    told.push(
      ...steps.map(({ step_key, member_id, status, output, error_text }) =>
        status === 'completed'
          ? section(`Step ${step_key} of ${member_id}: completed`, output, share(steps.length))
          : `Step ${step_key} of ${member_id}: ${status}${error_text ? ` (${error_text})` : ''}`,
      ),
      [
        'All steps are over. Sum up: end your turn with the result of the run as your last message.',
        'If more has to be done first, add steps by `svc actor step-add` as before; you are asked again then.',
      ].join('\n'),
    );
  }
  return told.join('\n\n');
}

function roleOf(spec: TeamSpec, member_id: string): 'leader' | 'worker' {
  return spec.leader_member_id === member_id ? 'leader' : 'worker';
}

function rosterLine(spec: TeamSpec, { member_id, description, skills }: Member): string {
  const about = [description, skills.length > 0 ? `skills: ${skills.join(', ')}` : ''].filter(Boolean);
  const what = about.length > 0 ? `: ${about.join('; ')}` : '';
  return `- ${member_id} (${roleOf(spec, member_id)})${what}`;
}

function commands(role: 'leader' | 'worker'): string[] {
  return [
    '  svc actor send --to <member, leader or user> --payload \'{"text": "…"}\'',
    '  svc actor inbox',
    '  svc actor ack --message-id <id>',
    ...(role === 'leader'
      ? [
          '  svc actor step-add --step-key <key> --member <member> --prompt <what to do> [--depends-on <key> …]',
        ]
      : []),
    'Who you are is known from your environment. Acknowledge a message once you have dealt with it.',
  ];
}

function isNothing(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value).length === 0);
}

/** How much of each of so many outputs is shown. */
function share(count: number): number {
  return Math.min(limits.step_prompt_output_chars, Math.floor(limits.step_prompt_outputs_chars / count));
}

/** Text as it is, all else as JSON; what is too long says so. */
function section(title: string, value: unknown, chars_max: number): string {
  const text = typeof value === 'string' ? value.trimEnd() : JSON.stringify(value, null, 2);
  const shown =
    text.length <= chars_max ? text : `${text.slice(0, chars_max)}\n[cut: ${text.length} characters in all]`;
  return `${title}:\n<<<\n${shown}\n>>>`;
}
