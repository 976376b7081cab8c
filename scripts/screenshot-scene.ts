/**
 * What the pictures of the web UI show: two repositories, a remote node, twelve agents that look like coding agents at work,
 * and a run in progress. The agents are scripted, but everything that svc shows about them is real.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '../src/base/async.ts';
import type { TestAgentNode } from '../src/testing/agent-node.ts';
import type { TestPlane } from '../src/testing/plane.ts';
import { makeRepository } from '../src/testing/repository.ts';
import { root } from './run.ts';

export interface Scene {
  /** Ids of agents by name. */
  agents: Readonly<Record<string, string>>;
  team: string;
  /** The path of the run. */
  run: string;
  /** The id of the review that has waited longest. */
  review: string;
}

type Update = Record<string, unknown>;
const WORKING: Update = { sleep: 86_400_000 };
const SHOWN_WAITING = 3;

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
  const { client } = plane;
  const shop = makeRepository(join(plane.work, 'shop'), {
    'README.md': '# Shop\n\nSells things.\n',
    'src/cart.ts': CART,
    'src/gift-cards.ts': 'export {};\n',
  });
  const billing = makeRepository(join(plane.work, 'billing-api'), {
    'README.md': '# Billing\n',
    'src/rounding.ts': 'export const round = (amount: number) => amount;\n',
    'docs/api.md': '# API\n',
  });
  const remote = makeRepository(join(node.work, 'search'), { 'train.py': 'print("train")\n' });

  const agents: Record<string, string> = {};
  const create = async (name: string, repo: string, body: object) => {
    const worktree = { worktree_mode: 'create_worktree', worktree_repo: repo, start: true };
    const made = await client.call('createAgent', { body: { name, ...worktree, ...body } as never });
    agents[name] = made.id;
  };
  const program = (name: string, repo: string, command: string, body: object = {}) =>
    create(name, repo, { command, ...body });
  /** `edit`: a shell command that changes the worktree before the agent starts. */
  const coder = (
    [name, repo, preset]: [string, string, string],
    prompt: string,
    turn: Update[],
    edit = ':',
  ) => {
    const scripted = join(root, 'src/testing/acp-agent.ts');
    const script = JSON.stringify([turn]).replaceAll("'", '’');
    const command = `${edit}; exec ${process.execPath} ${scripted} sends_updates '${script}'`;
    return create(name, repo, { preset, permission_mode: 'agent', command, prompt });
  };

  await program('lint', shop, 'echo "checked 214 files"; echo "no problems"');
  await program(
    'migrate-orders',
    billing,
    'echo "migrating table orders"; echo "ERROR: out of memory while sorting orders" >&2; exit 137',
  );
  await program(
    'watch-build',
    shop,
    'n=0; while :; do n=$((n+1)); printf "\\033[32mok\\033[0m build %d in %d ms\\n" $n $((n * 7 % 90 + 40)); sleep 0.2; done',
  );
  const on_gpu = { node_id: 'gpu-1', worktree_mode: 'use_existing', worktree_repo: null, workdir: remote };
  await program('train-embeddings', remote, 'echo "epoch 3 of 20"; sleep 86400', on_gpu);
  await program('eval-search', remote, 'echo "recall 0.93"', on_gpu);
  await coder(
    ['gift-cards', shop, 'claude'],
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
  await coder(['round-invoices', billing, 'codex'], 'Round invoices to cents.', [
    plan(1, 'Find every sum', 'Round in one place', 'Run the tests'),
    usage(18, 0.12),
    tool('npm test -- invoices', 'execute', 'in_progress'),
    WORKING,
  ]);
  await coder(
    ['api-docs', billing, 'gemini'],
    'Describe the endpoints for refunds.',
    [
      plan(3, 'List the endpoints', 'Write the page', 'Check the examples'),
      usage(9, 0.04),
      tool('Edit docs/api.md', 'edit'),
      say('The page now describes all four endpoints, each with an example.'),
    ],
    'printf "\\n## Refunds\\n\\nPOST /refunds\\n" >> docs/api.md',
  );
  await coder(
    ['storefront-a11y', shop, 'claude'],
    'Fix what axe reports on the start page.',
    [
      plan(2, 'Run axe', 'Fix the labels'),
      usage(33, 0.27),
      say('Both fields have labels now. axe finds nothing else.'),
    ],
    'printf "\\nLabels are required.\\n" >> README.md',
  );
  await coder(['vat-rates', billing, 'claude'], 'Add the new VAT rates.', [
    plan(0, 'Look up the rates', 'Change the table'),
    usage(6, 0.02),
    ask('curl -s https://rates.example/vat.json', 'execute'),
  ]);
  await coder(
    ['fix-checkout-race', shop, 'claude'],
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

  const example = JSON.parse(await readFile(join(root, 'examples/human.json'), 'utf8'));
  const team = await client.call('createTeam', { body: { ...example, name: 'release-notes' } });
  const run = await client.call('createRun', {
    params: { team_id: team.id },
    body: { input: { title: 'What is new in version 2.4' } },
  });
  const waiting = async () =>
    (await client.call('listReviews', { query: { status: 'pending', limit: 10 } })) as {
      items: { id: string; created_at: string }[];
    };
  while ((await waiting()).items.length < SHOWN_WAITING) await sleep(100);
  const [oldest] = (await waiting()).items.sort((a, b) => a.created_at.localeCompare(b.created_at));
  return { agents, team: team.id, run: `/teams/${team.id}/runs/${run.id}`, review: oldest!.id };
}
