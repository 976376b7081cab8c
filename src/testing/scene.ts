/**
 * What the pictures of the web UI show: two repositories, a remote node, twelve agents that look like coding agents at work,
 * tasks, and a run in progress. The agents are scripted, but everything that svc shows about them is real. Each step waits
 * until its agent no longer changes, so that the order of all records is the same each time.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CreateAgent } from '../features/agents/creation.ts';
import type { Agent } from '../features/agents/rules.ts';
import type { TestAgentNode } from './agent-node.ts';
import { openPace } from './pace.ts';
import type { TestPlane } from './plane.ts';
import { makeRepository } from './repository.ts';

export interface Scene {
  /** Ids of agents by name. */
  agents: Readonly<Record<string, string>>;
  team: string;
  /** The path of the run. */
  run: string;
  run_id: string;
  /** The id of the review that has waited longest. */
  review: string;
  /** The id of a task without a run. */
  task: string;
  /** When each step of the scene was complete, in milliseconds since the Unix epoch. */
  steps: readonly number[];
}

type Update = Record<string, unknown>;
const TASKS = [
  ['Announce the price change', 'Customers with yearly plans keep their price until their plan ends.'],
  ['Describe the new export', 'One paragraph and a picture.'],
] as const;
const WORKING: Update = { sleep: 86_400_000 };
const SCRIPTED = fileURLToPath(new URL('acp-agent.ts', import.meta.url));
const TEAM = new URL('../../examples/human.json', import.meta.url);

const CART = `import type { Item } from './item.ts';

export function total(items: readonly Item[]): number {
  return items.reduce((sum, item) => sum + item.price * item.count, 0);
}
`;
const FIXED_CART = `import type { Item } from './item.ts';

/** In cents, because sums of fractions are not exact. */
export function total(items: readonly Item[]): number {
  return items.reduce((sum, item) => sum + Math.round(item.price * 100) * item.count, 0);
}
`;

const say = (text: string, messageId = text): Update => ({
  sessionUpdate: 'agent_message_chunk',
  messageId,
  content: { type: 'text', text },
});
const tool = (title: string, kind: string, status = 'completed'): Update => ({
  sessionUpdate: 'tool_call',
  toolCallId: title,
  title,
  kind,
  status,
});
const plan = (done: number, ...entries: string[]): Update => ({
  sessionUpdate: 'plan',
  entries: entries.map((content, at) => ({
    content,
    priority: 'medium',
    status: at < done ? 'completed' : at === done ? 'in_progress' : 'pending',
  })),
});
const usage = (percent: number, amount: number): Update => ({
  sessionUpdate: 'usage_update',
  used: percent * 2_000,
  size: 200_000,
  cost: { amount, currency: 'USD' },
});
const ask = (title: string, kind: string, content: Update[] = []): Update => ({
  toolCall: { toolCallId: title, title, kind, content },
  options: [
    { optionId: 'once', name: 'Allow once', kind: 'allow_once' },
    { optionId: 'always', name: 'Always allow', kind: 'allow_always' },
    { optionId: 'no', name: 'Reject', kind: 'reject_once' },
  ],
});

/** `node`: `gpu-1`. */
export async function openScene(plane: TestPlane, node: TestAgentNode): Promise<Scene> {
  const builder = new Builder(plane);
  const repos = {
    shop: makeRepository(join(plane.work, 'shop'), {
      'README.md': '# Shop\n\nSells things.\n',
      'src/cart.ts': CART,
      'src/gift-cards.ts': 'export {};\n',
    }),
    billing: makeRepository(join(plane.work, 'billing-api'), {
      'README.md': '# Billing\n',
      'src/rounding.ts': 'export const round = (amount: number) => amount;\n',
      'docs/api.md': '# API\n',
    }),
  };
  const remote = makeRepository(join(node.work, 'search'), { 'train.py': 'print("train")\n' });
  await addPrograms(builder, repos, remote);
  await addCoders(builder, repos);
  await addWaitingCoders(builder, repos);
  const { client } = plane;
  const waiting = (await client.call('listReviews', { query: { status: 'pending' } })) as { id: string }[];
  return {
    agents: builder.agents,
    review: waiting.at(-1)!.id,
    ...(await addTeam(builder)),
    steps: builder.steps,
  };
}

interface Repos {
  shop: string;
  billing: string;
}

/** Creates agents one after the other. */
class Builder {
  readonly plane: TestPlane;
  readonly agents: Record<string, string> = {};
  readonly steps: number[] = [];

  constructor(plane: TestPlane) {
    this.plane = plane;
  }

  async program(
    name: string,
    repo: string,
    command: string,
    isSteady: (agent: Agent) => boolean,
    body: Partial<CreateAgent> = {},
  ): Promise<void> {
    await this.#create(name, repo, { command, ...body }, isSteady);
  }

  /** `edit`: a shell command that changes the worktree before the agent starts. */
  async coder(
    [name, repo, preset]: [string, string, string],
    prompt: string,
    turn: Update[],
    edit = ':',
  ): Promise<void> {
    const script = JSON.stringify([turn]).replaceAll("'", '’');
    const command = `${edit}; exec ${process.execPath} ${SCRIPTED} sends_updates '${script}'`;
    await this.#create(name, repo, { preset, permission_mode: 'agent', command, prompt }, steadyAfter(turn));
  }

  /** Waits until `state` returns a value. */
  async until<T>(state: () => Promise<T | undefined>): Promise<T> {
    for (const pause = openPace(); ; await pause()) {
      const value = await state();
      if (value !== undefined) return value;
    }
  }

  /** Ends a step. Nothing that comes later has the same time. */
  step(): void {
    this.steps.push(Date.now());
  }

  async #create(
    name: string,
    repo: string,
    body: Partial<CreateAgent>,
    isSteady: (agent: Agent) => boolean,
  ): Promise<void> {
    const worktree = { worktree_mode: 'create_worktree', worktree_repo: repo, start: true } as const;
    const made = await this.plane.client.call('createAgent', { body: { name, ...worktree, ...body } });
    this.agents[name] = made.id;
    await this.until(async () => isSteady(await this.plane.get(made.id)) || undefined);
    this.step();
  }
}

const hasEnded = ({ status }: Agent) => status === 'completed' || status === 'failed';
const hasPrinted = ({ status, last_seq }: Agent) => status === 'running' && last_seq > 1;

/** Whether an agent has done everything in its turn, except to wait. */
function steadyAfter(turn: Update[]): (agent: Agent) => boolean {
  const [before, last] = turn.slice(-2);
  if (last === WORKING) return ({ summary }) => summary.now === before!.title;
  if (last!.options) return ({ needs_you }) => needs_you !== null;
  return ({ activity, summary }) => activity === 'idle' && summary.diff !== null;
}

async function addPrograms(builder: Builder, { shop, billing }: Repos, remote: string): Promise<void> {
  await builder.program('lint', shop, 'echo "checked 214 files"; echo "no problems"', hasEnded);
  await builder.program(
    'migrate-orders',
    billing,
    'echo "migrating table orders"; echo "ERROR: out of memory while sorting orders" >&2; exit 137',
    hasEnded,
  );
  await builder.program(
    'watch-build',
    shop,
    'n=0; while [ $n -lt 60 ]; do n=$((n+1)); printf "\\033[32mok\\033[0m build %d in %d ms\\n" $n $((n * 7 % 90 + 40)); done; sleep 86400',
    hasPrinted,
  );
  const on_gpu = {
    node_id: 'gpu-1',
    worktree_mode: 'use_existing',
    worktree_repo: null,
    workdir: remote,
  } as const;
  await builder.program('train-embeddings', remote, 'echo "epoch 3 of 20"; sleep 86400', hasPrinted, on_gpu);
  await builder.program('eval-search', remote, 'echo "recall 0.93"', hasEnded, on_gpu);
}

async function addCoders(builder: Builder, repos: Repos): Promise<void> {
  await builder.coder(
    ['gift-cards', repos.shop, 'claude'],
    'Add gift cards to the checkout.',
    [
      plan(
        2,
        'Read the checkout',
        'Model gift cards',
        'Apply them to the total',
        'Write tests',
        'Update the docs',
      ),
      usage(41, 0.38),
      tool('Read src/cart.ts', 'read'),
      say('Gift cards become a separate line of the cart, so that refunds stay simple.'),
      tool('Edit src/gift-cards.ts', 'edit', 'in_progress'),
      WORKING,
    ],
    'echo "export interface GiftCard {}" > src/gift-cards.ts',
  );
  await builder.coder(['round-invoices', repos.billing, 'codex'], 'Round invoices to cents.', [
    plan(1, 'Find every sum', 'Round in one place', 'Run the tests'),
    usage(18, 0.12),
    tool('npm test -- invoices', 'execute', 'in_progress'),
    WORKING,
  ]);
  await builder.coder(
    ['api-docs', repos.billing, 'gemini'],
    'Describe the endpoints for refunds.',
    [
      plan(3, 'List the endpoints', 'Write the page', 'Check the examples'),
      usage(9, 0.04),
      tool('Edit docs/api.md', 'edit'),
      say('The page now describes all four endpoints, each with an example.'),
    ],
    'printf "\\n## Refunds\\n\\nPOST /refunds\\n" >> docs/api.md',
  );
  await builder.coder(
    ['storefront-a11y', repos.shop, 'claude'],
    'Fix what axe reports on the start page.',
    [
      plan(2, 'Run axe', 'Fix the labels'),
      usage(33, 0.27),
      say('Both fields have labels now. axe finds nothing else.'),
    ],
    'printf "\\nLabels are required.\\n" >> README.md',
  );
}

async function addWaitingCoders(builder: Builder, repos: Repos): Promise<void> {
  await builder.coder(['vat-rates', repos.billing, 'claude'], 'Add the new VAT rates.', [
    plan(0, 'Look up the rates', 'Change the table'),
    usage(6, 0.02),
    ask('curl -s https://rates.example/vat.json', 'execute'),
  ]);
  await builder.coder(
    ['fix-checkout-race', repos.shop, 'claude'],
    'The checkout test is flaky. Find out why, and fix it.',
    [
      plan(2, 'Reproduce the failure', 'Find the race', 'Fix the total', 'Run the tests'),
      usage(61, 0.42),
      say('I’ll run the test in a loop first, to see how often it fails.'),
      tool('npm test -- checkout --repeat 50', 'other'),
      tool('Read src/cart.ts', 'read'),
      tool('Read src/checkout.test.ts', 'read'),
      say(
        'It fails in 3 of 50 runs: sums of fractions differ in the last digit. Calculating in **cents** fixes it, without a change of the tests.',
      ),
      ask('Edit src/cart.ts', 'edit', [
        { type: 'diff', path: 'src/cart.ts', oldText: CART, newText: FIXED_CART },
      ]),
    ],
  );
}

/** A run that waits for an answer, and tasks without a run. */
async function addTeam(builder: Builder): Promise<Pick<Scene, 'team' | 'run' | 'run_id' | 'task'>> {
  const { client } = builder.plane;
  const example = JSON.parse(await readFile(TEAM, 'utf8'));
  const { id: team_id } = await client.call('createTeam', { body: { ...example, name: 'release-notes' } });
  builder.step();
  const run = await client.call('createRun', {
    params: { team_id },
    body: { input: { title: 'What is new in version 2.4' } },
  });
  await builder.until(async () => {
    const agents = (await client.call('listAgents', { query: {} })) as Agent[];
    return agents.some(({ run_id, needs_you }) => run_id === run.id && needs_you !== null) || undefined;
  });
  builder.step();
  const tasks: string[] = [];
  for (const [title, description] of TASKS) {
    const made = await client.call('createTask', { params: { team_id }, body: { title, description } });
    tasks.push(made.id);
    builder.step();
  }
  await client.call('createUser', {
    body: { username: 'ben', password: 'correct horse battery', role: 'user' },
  });
  await client.call('createToken', { body: { name: 'nightly build', scopes: ['read', 'operate'] } });
  const all = (await client.call('listAgents', { query: {} })) as Agent[];
  for (const { id: agent_id, last_seq } of all) {
    await client.call('markSeen', { params: { agent_id }, body: { seq: last_seq } });
  }
  builder.step();
  return { team: team_id, run: `/teams/${team_id}/runs/${run.id}`, run_id: run.id, task: tasks[0]! };
}
