import { expect, test } from 'vitest';
import type { Member, TeamSpec } from '../teams/rules/team.ts';
import type { RoundInput } from './step-io.ts';
import { introduction, roundPrompt, stepPrompt } from './step-prompts.ts';

const member = (member_id: string, more: Partial<Member> = {}): Member => ({
  ...{ member_id, description: '', skills: [], prompt: '', agent: null },
  ...more,
});
const lea = member('lea', { description: 'plans the work', prompt: 'You plan, others do.' });
const bob = member('bob', { description: 'writes code', skills: ['go', 'sql'] });
const spec: TeamSpec = {
  ...{ spec_version: 1, entrypoint: { type: 'task' }, members: [lea, bob], leader_member_id: 'lea' },
  ...{ steps: [], review_route: 'human', max_rounds: 20 },
};

const help = [{ commands: ['svc actor shout <text>', 'svc actor listen'], advice: 'Answer everyone.' }];

const build = { step_key: 'build', prompt: '' };

test('introduces an agent to its role, its team and the commands', () => {
  expect(introduction({ team_name: 'harbour', spec, member: bob, help })).toMatchInlineSnapshot(`
    "You are bob, a worker of the team "harbour".

    writes code

    The team:
    - lea (leader): plans the work
    - bob (worker): writes code; skills: go, sql

    Talk to the team with commands in your shell:
      svc actor shout <text>
      svc actor listen
    Your environment identifies you. Answer everyone."
  `);
});

test('also explains to a leader how to add steps', () => {
  const text = introduction({ team_name: 'harbour', spec, member: lea, help: [] });
  expect(text).toContain('You are lea, the leader of the team "harbour".');
  expect(text).toContain('svc actor step-add');
});

test('names no commands to agents that cannot use them', () => {
  const round: RoundInput = { run_input: {}, round: 1, about: 'plan', members: [], steps: [] };
  expect(introduction({ team_name: 'harbour', spec, member: lea, help: null })).toMatch(
    /\n\nThe commands of `svc actor` are not available here\.$/,
  );
  const plan = roundPrompt(round, false);
  expect(plan).toContain('You cannot add steps here.');
  expect(plan + roundPrompt({ ...round, round: 2, about: 'sum_up' }, false)).not.toContain('step-add');
});

test('a step prompt has the instructions, the inputs and the outputs of its dependencies', () => {
  const input = {
    run_input: { topic: 'cranes' },
    input: null,
    needs: { dig: 'a hole\n', draw: { lines: 2 } },
  };
  expect(
    stepPrompt({ step_key: 'build', prompt: 'Build it.' }, { ...input, answer: 'in red' }),
  ).toMatchInlineSnapshot(`
    "Your step is "build".

    Build it.

    Input of the run:
    <<<
    {
      "topic": "cranes"
    }
    >>>

    Output of step dig:
    <<<
    a hole
    >>>

    Output of step draw:
    <<<
    {
      "lines": 2
    }
    >>>

    Answer to your question:
    <<<
    in red
    >>>

    When you end your turn the step is completed, and your last message is its output."
  `);
});

test('a step prompt omits what the step does not have', () => {
  expect(stepPrompt(build, { run_input: {}, input: null, needs: {} })).toMatchInlineSnapshot(`
    "Your step is "build".

    When you end your turn the step is completed, and your last message is its output."
  `);
});

test('cuts an output that is too long for a prompt, with a note', () => {
  const text = stepPrompt(build, { run_input: {}, input: null, needs: { dig: 'x'.repeat(20_000) } });
  expect(text.length).toBeLessThan(17_000);
  expect(text).toContain('[cut: 20000 characters in all]');
});

test('cuts no character in half', () => {
  for (const pad of ['', 'x']) {
    const output = pad + '😀'.repeat(10_000);
    const text = stepPrompt(build, { run_input: {}, input: null, needs: { dig: output } });
    expect(text.isWellFormed()).toBe(true);
  }
});

test('a leader plans first, and sums up when all steps have ended', () => {
  const round: RoundInput = {
    run_input: { topic: 'cranes' },
    round: 1,
    about: 'plan',
    members: [],
    steps: [],
  };
  expect(roundPrompt(round, true)).toMatchInlineSnapshot(`
    "Input of the run:
    <<<
    {
      "topic": "cranes"
    }
    >>>

    Plan the work. Add a step for each part, for the member that fits best, then end your turn:
      svc actor step-add --step-key <key> --member <member> --prompt <what to do> [--depends-on <key> …]
    Steps that do not depend on each other run in parallel. You are asked again when all steps have ended.
    If there is nothing to delegate, do the work yourself: your last message is the result of the run."
  `);
  const steps = [
    { step_key: 'dig', member_id: 'bob', status: 'completed', output: 'a hole', error_text: null },
    { step_key: 'fill', member_id: 'bob', status: 'failed', output: null, error_text: 'exit code 3' },
  ];
  expect(roundPrompt({ ...round, round: 2, about: 'sum_up', steps }, true)).toMatchInlineSnapshot(`
    "Input of the run:
    <<<
    {
      "topic": "cranes"
    }
    >>>

    Step dig of bob: completed:
    <<<
    a hole
    >>>

    Step fill of bob: failed (exit code 3)

    All steps have ended. Sum up: end your turn with the result of the run as your last message.
    If more work is needed first, add steps with \`svc actor step-add\` as before; you are asked again then."
  `);
});
