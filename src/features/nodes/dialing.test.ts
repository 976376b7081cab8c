import { expect, onTestFinished, test } from 'vitest';
import { limits } from '../../base/limits.ts';
import { silentLog } from '../../base/log.ts';
import {
  BOOTSTRAP,
  joinTo,
  openTrustedNode,
  type TestClock,
  type TrustedNode,
  testPlaneTrust,
} from '../../testing/trusted-node.ts';
import { type DialingDeps, dial } from './dialing.ts';
import type { NodeRow } from './queries.ts';

const HOUR_MS = 60 * 60 * 1000;

function rowOf({ port }: TrustedNode, more: Partial<NodeRow> = {}): NodeRow {
  return {
    id: 'web-1',
    name: 'web-1',
    grpc_target: `https://127.0.0.1:${port}`,
    tls_server_name: null,
    default_worktree_root: null,
    disk_id: null,
    epoch: 0,
    joined_at: null,
    last_seen_at: null,
    version: null,
    created_at: 0,
    updated_at: 0,
    ...more,
  };
}

async function depsOf(more: Partial<DialingDeps> = {}): Promise<DialingDeps & { joins: string[] }> {
  const trust = more.trust ?? (await testPlaneTrust());
  const joins: string[] = [];
  return {
    trust,
    bootstrap: { usable: async () => [], spend: async () => true },
    recordJoin: async (node_id) => void joins.push(node_id),
    tokens_first: false,
    clock: { now: () => Date.now() },
    log: silentLog,
    ...more,
    joins,
  };
}

/** `ok`, or the message of the Problem. */
async function outcome(deps: DialingDeps, row: NodeRow): Promise<string> {
  try {
    const connection = await dial(deps, row, AbortSignal.timeout(limits.link_connect_ms));
    onTestFinished(() => connection.close());
    return 'ok';
  } catch (error) {
    return (error as Error).message;
  }
}

function hourOff({ options }: TrustedNode): void {
  (options.clock as TestClock).now_ms += HOUR_MS;
}

test('a node that has not joined does so with a usable token, once', async () => {
  const node = await openTrustedNode();
  expect(await outcome(await depsOf(), rowOf(node))).toBe('certificate verify failed');
  const usable = async () => [{ id: 'a', token: BOOTSTRAP }];
  const deps = await depsOf({ bootstrap: { usable, spend: async () => true } });
  expect(await outcome(deps, rowOf(node))).toBe('ok');
  expect(await outcome(deps, rowOf(node))).toBe('ok');
  expect(deps.joins).toEqual(['web-1']);
});

test('a token that another node used lets no other node join', async () => {
  const node = await openTrustedNode();
  const usable = async () => [{ id: 'a', token: BOOTSTRAP }];
  const deps = await depsOf({ bootstrap: { usable, spend: async () => false } });
  expect(await outcome(deps, rowOf(node))).toBe('unauthorized');
  expect(node.trust.state).toBe('alone');
});

test('with certificates, a clock an hour off does not matter', async () => {
  const trust = await testPlaneTrust();
  const node = await openTrustedNode();
  await joinTo(node, trust);
  hourOff(node);
  expect(await outcome(await depsOf({ trust }), rowOf(node))).toBe('ok');
  expect(node.reasons).toEqual([]);
});

test('with tokens, a clock an hour off is `unauthorized`', async () => {
  const trust = await testPlaneTrust();
  const node = await openTrustedNode({ mode: 'tls' });
  await joinTo(node, trust);
  expect(await outcome(await depsOf({ trust }), rowOf(node))).toBe('ok');
  hourOff(node);
  expect(await outcome(await depsOf({ trust, tokens_first: true }), rowOf(node))).toBe('unauthorized');
});

test('a node is recognized by its certificate at any address, unless a name is configured', async () => {
  const trust = await testPlaneTrust();
  const node = await openTrustedNode();
  await joinTo(node, trust, { names: ['web-1.example'] });
  const deps = await depsOf({ trust });
  expect(await outcome(deps, rowOf(node))).toBe('ok');
  expect(await outcome(deps, rowOf(node, { tls_server_name: 'web-1.example' }))).toBe('ok');
  expect(await outcome(deps, rowOf(node, { tls_server_name: 'web-2.example' }))).toBe(
    'certificate verify failed',
  );
  expect(await outcome(deps, rowOf(node, { id: 'web-2' }))).toBe(
    'node id mismatch: registered web-2, node says web-1',
  );
});

test('rejects forbidden addresses at every connection', async () => {
  const node = await openTrustedNode();
  const refused = 'grpc_target address is not allowed';
  for (const host of ['169.254.169.254', '0.0.0.0', '[::]', '224.0.0.1']) {
    const row = rowOf(node, { grpc_target: `https://${host}:${node.port}` });
    expect(await outcome(await depsOf(), row)).toBe(refused);
  }
});
