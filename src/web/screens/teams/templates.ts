/** Templates for teams. They run without changes: with the demo agent, or with common shell commands. */
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
/** A demo agent that acts without asking. */
const autonomous = (...options: string[]) => ({
  ...demo('--mode', 'auto', ...options),
  permission_mode: 'agent',
});

export const templates: readonly Template[] = [
  {
    id: 'writer-reviewer',
    title: 'Writer + reviewer',
    what: 'One agent writes and asks you first; the other reviews the result.',
    team: {
      name: 'writer-reviewer',
      description: 'A writer that asks before it writes, and a reviewer that suggests improvements.',
      spec: {
        members: [
          {
            member_id: 'writer',
            description: 'Writes what the run asks for',
            prompt: 'You write what the run asks for. Keep it short.',
            agent: demo(),
          },
          {
            member_id: 'reviewer',
            description: 'Reviews the text and suggests improvements',
            prompt: 'You review what the writer wrote. Point out what is wrong and what is good.',
            agent: autonomous(),
          },
        ],
        steps: [
          { step_key: 'write', member_id: 'writer', prompt: 'Write what the input asks for.' },
          {
            step_key: 'review',
            member_id: 'reviewer',
            depends_on: ['write'],
            prompt: 'Review what the writer wrote.',
          },
        ],
      },
    },
  },
  {
    id: 'leader-workers',
    title: 'Leader + two workers',
    what: 'The leader plans, assigns steps and summarizes the results.',
    team: {
      name: 'leader-workers',
      description: 'A leader plans, assigns a step to each of two workers, and summarizes their results.',
      spec: {
        leader_member_id: 'lead',
        members: [
          {
            member_id: 'lead',
            description: 'Plans, assigns steps and summarizes',
            prompt: 'You lead. Add a step for each worker, and summarize their results.',
            agent: autonomous(),
          },
          {
            member_id: 'first',
            description: 'Does one part of the work',
            agent: autonomous(),
          },
          {
            member_id: 'second',
            description: 'Does the other part',
            agent: autonomous('--seed', '2'),
          },
        ],
        steps: [],
      },
    },
  },
  {
    id: 'pipeline',
    title: 'Pipeline',
    what: 'Shell commands that depend on each other; two run in parallel.',
    team: {
      name: 'pipeline',
      description:
        'Each step runs the script in the environment variable named after it, in a shared folder.',
      spec: {
        members: [
          {
            member_id: 'shell',
            description: 'Runs the script named after the step',
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

/** The smallest valid team. */
export const blank = {
  name: '',
  description: '',
  spec: { members: [{ member_id: 'worker', agent: null }], steps: [] },
};
