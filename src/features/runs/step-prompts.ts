/**
 * Prompts about their team, steps and rounds for agents that speak ACP (pure). They explain everything that the agent needs,
 * and take about a minute to read. Delimiters mark the parts that other people or agents wrote.
 */

import { truncateText } from '../../acp/json.ts';
import type { ActorHelp } from '../feature.ts';
import type { Member, TeamSpec } from '../teams/rules/team.ts';
import { limits } from './limits.ts';
import type { RoundInput, StepInput } from './step-io.ts';

export interface Introduced {
  team_name: string;
  spec: TeamSpec;
  member: Member;
  /** About commands besides those for steps; null if agents cannot use commands. */
  help: readonly ActorHelp[] | null;
}

/** The start of an agent's first prompt: its role, the other members, and how to communicate with them. */
export function introduction({ team_name, spec, member, help }: Introduced): string {
  const { member_id, prompt, description } = member;
  const role = getRole(spec, member_id);
  return [
    `You are ${member_id}, ${role === 'leader' ? 'the leader' : 'a worker'} of the team "${team_name}".`,
    ...(description ? [description] : []),
    ...(prompt ? [prompt] : []),
    ['The team:', ...spec.members.map((member) => memberLine(spec, member))].join('\n'),
    ...formatCommands(role, help),
  ].join('\n\n');
}

/** The prompt for a step. */
export function stepPrompt(
  { step_key, prompt }: { step_key: string; prompt: string },
  { run_input, input, needs, answer }: StepInput,
): string {
  const outputs = Object.entries(needs);
  const needed = outputs.map(([key, output]) =>
    section(`Output of step ${key}`, output, share(outputs.length)),
  );
  return [
    `Your step is "${step_key}".`,
    ...(prompt ? [prompt] : []),
    ...(isEmpty(input) ? [] : [section('Input of the step', input, limits.step_prompt_input_chars)]),
    ...(isEmpty(run_input) ? [] : [section('Input of the run', run_input, limits.step_prompt_input_chars)]),
    ...needed,
    ...(answer === undefined
      ? []
      : [section('Answer to your question', answer, limits.step_prompt_input_chars)]),
    'When you end your turn the step is completed, and your last message is its output.',
  ].join('\n\n');
}

/** The prompt for a round of the leader. `may_call`: it can add steps. */
export function roundPrompt({ run_input, about, steps }: RoundInput, may_call: boolean): string {
  const sections = [section('Input of the run', run_input, limits.step_prompt_input_chars)];
  if (about === 'plan' && !may_call) {
    sections.push(
      'You cannot add steps here. Do the work yourself: your last message is the result of the run.',
    );
  } else if (about === 'plan') {
    sections.push(
      [
        'Plan the work. Add a step for each part, for the member that fits best, then end your turn:',
        '  svc actor step-add --step-key <key> --member <member> --prompt <what to do> [--depends-on <key> …]',
        'Steps that do not depend on each other run in parallel. You are asked again when all steps have ended.',
        'If there is nothing to delegate, do the work yourself: your last message is the result of the run.',
      ].join('\n'),
    );
  } else {
    sections.push(
      ...steps.map(({ step_key, member_id, status, output, error_text }) =>
        status === 'completed'
          ? section(`Step ${step_key} of ${member_id}: completed`, output, share(steps.length))
          : `Step ${step_key} of ${member_id}: ${status}${error_text ? ` (${error_text})` : ''}`,
      ),
      [
        'All steps have ended. Sum up: end your turn with the result of the run as your last message.',
        ...(may_call
          ? [
              'If more work is needed first, add steps with `svc actor step-add` as before; you are asked again then.',
            ]
          : []),
      ].join('\n'),
    );
  }
  return sections.join('\n\n');
}

function getRole(spec: TeamSpec, member_id: string): 'leader' | 'worker' {
  return spec.leader_member_id === member_id ? 'leader' : 'worker';
}

function memberLine(spec: TeamSpec, { member_id, description, skills }: Member): string {
  const about = [description, skills.length > 0 ? `skills: ${skills.join(', ')}` : ''].filter(Boolean);
  const what = about.length > 0 ? `: ${about.join('; ')}` : '';
  return `- ${member_id} (${getRole(spec, member_id)})${what}`;
}

/** A paragraph about the commands, or that they are not available; none if there are no commands. */
function formatCommands(role: 'leader' | 'worker', help: Introduced['help']): string[] {
  if (help === null) return ['The commands of `svc actor` are not available here.'];
  const usages = [
    ...help.flatMap(({ commands }) => commands),
    ...(role === 'leader'
      ? ['svc actor step-add --step-key <key> --member <member> --prompt <what to do> [--depends-on <key> …]']
      : []),
  ];
  if (usages.length === 0) return [];
  const lines = [
    'Talk to the team with commands in your shell:',
    ...usages.map((usage) => `  ${usage}`),
    ['Your environment identifies you.', ...help.map(({ advice }) => advice)].join(' '),
  ];
  return [lines.join('\n')];
}

function isEmpty(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value).length === 0);
}

/** How many characters of each of `count` outputs are shown. */
function share(count: number): number {
  return Math.min(limits.step_prompt_output_chars, Math.floor(limits.step_prompt_outputs_chars / count));
}

/** Text stays unchanged, and other values become JSON. The result is truncated to `chars_max` characters, with a note. */
function section(title: string, value: unknown, chars_max: number): string {
  const text = typeof value === 'string' ? value.trimEnd() : JSON.stringify(value, null, 2);
  const shown =
    text.length <= chars_max
      ? text
      : `${truncateText(text, chars_max)}\n[cut: ${text.length} characters in all]`;
  return `${title}:\n<<<\n${shown}\n>>>`;
}
