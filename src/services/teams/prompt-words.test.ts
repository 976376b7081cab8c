import { expect, test } from 'vitest';
import type { Member, TeamSpec } from '../../domain/team.ts';
import { roundWords, stepWords, welcome } from './prompt-words.ts';
import type { RoundInput } from './step-data.ts';

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

test('an agent is told who it is, with whom it works and how it talks to them', () => {
  expect(welcome({ team_name: 'harbour', spec, member: bob })).toMatchInlineSnapshot(`
    "You are bob, a worker of the team "harbour".

    writes code

    The team:
    - lea (leader): plans the work
    - bob (worker): writes code; skills: go, sql

    You talk to the team by commands in your shell:
      svc actor send --to <member, leader or user> --payload '{"text": "…"}'
      svc actor inbox
      svc actor ack --message-id <id>
    Who you are is known from your environment. Acknowledge a message once you have dealt with it."
  `);
});

test('a leader is told besides how it hands out work', () => {
  const words = welcome({ team_name: 'harbour', spec, member: lea });
  expect(words).toContain('You are lea, the leader of the team "harbour".');
  expect(words).toContain('svc actor step-add');
});

test('a step is its prompt, what it was given and what it needs', () => {
  const told = {
    run_input: { topic: 'cranes' },
    input: null,
    needs: { dig: 'a hole\n', draw: { lines: 2 } },
  };
  expect(stepWords('build', 'Build it.', { ...told, answer: 'in red' })).toMatchInlineSnapshot(`
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

    Answer to what you asked:
    <<<
    in red
    >>>

    When you end your turn the step is completed, and your last message is its output."
  `);
});

test('a step without anything is short', () => {
  expect(stepWords('build', '', { run_input: {}, input: null, needs: {} })).toMatchInlineSnapshot(`
    "Your step is "build".

    When you end your turn the step is completed, and your last message is its output."
  `);
});

test('an output that is too long for a prompt is cut, and says so', () => {
  const words = stepWords('build', '', { run_input: {}, input: null, needs: { dig: 'x'.repeat(20_000) } });
  expect(words.length).toBeLessThan(17_000);
  expect(words).toContain('[cut: 20000 characters in all]');
});

test('a leader plans first, and sums up when all steps are over', () => {
  const round: RoundInput = {
    run_input: { topic: 'cranes' },
    round: 1,
    about: 'plan',
    members: [],
    steps: [],
  };
  expect(roundWords(round)).toMatchInlineSnapshot(`
    "Input of the run:
    <<<
    {
      "topic": "cranes"
    }
    >>>

    Plan the work. Add one step for each piece of it, for whichever member fits, and then end your turn:
      svc actor step-add --step-key <key> --member <member> --prompt <what to do> [--depends-on <key> …]
    Steps that do not depend on each other are taken side by side. You are asked again when all are over.
    If nothing needs to be handed out, do it yourself: your last message is then the result of the run."
  `);
  const steps = [
    { step_key: 'dig', member_id: 'bob', status: 'completed', output: 'a hole', error_text: null },
    { step_key: 'fill', member_id: 'bob', status: 'failed', output: null, error_text: 'exit code 3' },
  ];
  expect(roundWords({ ...round, round: 2, about: 'sum_up', steps })).toMatchInlineSnapshot(`
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

    All steps are over. Sum up: end your turn with the result of the run as your last message.
    If more has to be done first, add steps by \`svc actor step-add\` as before; you are asked again then."
  `);
});
