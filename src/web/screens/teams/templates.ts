/** Teams to begin with. They run as they stand: with the demo agent, or with what every shell has. */
export interface Template {
  id: string;
  title: string;
  what: string;
  team: { name: string; description: string; spec: object };
}

const demo = (...options: string[]) => ({
  preset: 'demo',
  ...(options.length > 0 && { argv: ['svc', 'demo-agent', ...options] }),
  worktree_mode: 'create_worktree',
});
/** One that acts without asking. */
const unasked = (...options: string[]) => ({
  ...demo('--mode', 'auto', ...options),
  permission_mode: 'agent',
});

export const templates: readonly Template[] = [
  {
    id: 'writer-reviewer',
    title: 'Writer + reviewer',
    what: 'One writes and asks you before it does, the other looks at it.',
    team: {
      name: 'writer-reviewer',
      description: 'A writer that asks before it writes, and a reviewer who says what to do better.',
      spec: {
        members: [
          {
            member_id: 'writer',
            description: 'Writes what is asked for',
            prompt: 'You write what the run asks for. Keep it short.',
            agent: demo(),
          },
          {
            member_id: 'reviewer',
            description: 'Reads it and says what to do better',
            prompt: 'You review what the writer made. Name what is wrong, and what is good.',
            agent: unasked(),
          },
        ],
        steps: [
          { step_key: 'write', member_id: 'writer', prompt: 'Write what the input asks for.' },
          {
            step_key: 'review',
            member_id: 'reviewer',
            depends_on: ['write'],
            prompt: 'Review what the writer made.',
          },
        ],
      },
    },
  },
  {
    id: 'leader-workers',
    title: 'Leader + two workers',
    what: 'The leader plans, hands out the steps, and sums up.',
    team: {
      name: 'leader-workers',
      description: 'A leader plans, hands a step to each of two workers, and sums up what they did.',
      spec: {
        leader_member_id: 'lead',
        members: [
          {
            member_id: 'lead',
            description: 'Plans, hands out and sums up',
            prompt: 'You lead. Add a step for each worker, and sum up what they made.',
            agent: unasked(),
          },
          {
            member_id: 'first',
            description: 'Takes one part of the work',
            agent: unasked(),
          },
          {
            member_id: 'second',
            description: 'Takes the other part',
            agent: unasked('--seed', '2'),
          },
        ],
        steps: [],
      },
    },
  },
  {
    id: 'pipeline',
    title: 'Pipeline',
    what: 'Shell commands that wait for each other, two of them side by side.',
    team: {
      name: 'pipeline',
      description: 'Each step is the script in env that has its name. All of a run share one folder.',
      spec: {
        members: [
          {
            member_id: 'shell',
            description: 'Runs the script that is named like the step',
            agent: {
              command: 'set -eu; eval "$(printenv "$SVC_STEP_KEY")"',
              worktree_mode: 'create_worktree',
              env: {
                prepare: 'seq 1 100 > numbers.txt; echo numbers.txt',
                count: 'grep -c . numbers.txt',
                sum: `awk '{ sum += $1 } END { print sum }' numbers.txt`,
                report: 'cat "$SVC_STEP_INPUT"',
              },
            },
          },
        ],
        steps: [
          { step_key: 'prepare' },
          { step_key: 'count', depends_on: ['prepare'] },
          { step_key: 'sum', depends_on: ['prepare'] },
          { step_key: 'report', depends_on: ['count', 'sum'] },
        ],
      },
    },
  },
];

/** The least that is a team. */
export const blank = {
  name: '',
  description: '',
  spec: { members: [{ member_id: 'worker', agent: null }], steps: [] },
};
