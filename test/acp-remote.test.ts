/** The example agent on a remote node, with network outages in the middle of its turn. */
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { Conversation } from '../src/testing/conversation.ts';
import { EXAMPLE_AGENT, expectFullTurn } from '../src/testing/example-agent.ts';
import { longTest } from '../src/testing/long.ts';
import { TestPlane } from '../src/testing/plane.ts';

/** Length of an outage. `SVC_TEST_OUTAGE_S=60` is long enough for the plane to mark the node unreachable. */
const OUTAGE_S = Number(process.env.SVC_TEST_OUTAGE_S ?? 3);
const timeout = 120_000 + 3 * OUTAGE_S * 1000;

let plane: TestPlane;
let node: TestAgentNode;
let opened: Conversation | undefined;
afterEach(async () => {
  await opened?.close();
  opened = undefined;
  await node?.close();
  await plane?.close();
});

async function begin(): Promise<Conversation> {
  plane = await TestPlane.open({ env: WITH_NODES });
  node = await TestAgentNode.open(plane, { proxied: true });
  opened = await Conversation.start(plane, EXAMPLE_AGENT, { prompt: 'Change it.', home: node });
  return opened;
}

/** Cuts every connection, and lets nothing pass for `OUTAGE_S`. */
async function outage(meanwhile = async () => {}): Promise<void> {
  node.proxy!.hold('up', 'down');
  node.proxy!.cut();
  await Promise.all([meanwhile(), sleep(OUTAGE_S * 1000)]);
  node.proxy!.release();
}

/** Breaks the link repeatedly. Each connection lives longer than the one before, so that slow machines get through as well. */
async function breakRepeatedly(stop: AbortSignal): Promise<void> {
  for (let life_ms = 300; !stop.aborted; life_ms *= 1.2) {
    await sleep(life_ms, stop);
    node.proxy!.cut();
  }
}

test('an answer given during an outage reaches the agent afterwards', {
  timeout,
}, async () => {
  const conversation = await begin();
  const [review] = await conversation.pending();
  await outage(async () => {
    const answered = await conversation.respond(review!.id, { decision: 'allow' });
    expect(answered).toMatchObject({ status: 'answered', delivery: 'queued' });
  });
  await conversation.untilIdle();
  await expectFullTurn(conversation);
});

longTest('a permission request made during an outage appears afterwards', { timeout }, async () => {
  const conversation = await begin();
  await conversation.event(({ method }) => method === 'session/update');
  await outage();
  const [review] = await conversation.pending();
  await conversation.respond(review!.id, { decision: 'allow' });
  await conversation.untilIdle();
  await expectFullTurn(conversation);
});

test('a turn is complete although the link breaks repeatedly and the plane and the node are killed', {
  timeout,
}, async () => {
  const conversation = await begin();
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const breaking = breakRepeatedly(stop.signal);
  const [review] = await conversation.pending();
  await plane.kill();
  await plane.start();
  await conversation.respond(review!.id, { decision: 'allow' });
  await node.kill();
  await node.start();
  stop.abort();
  await breaking;
  await conversation.untilIdle();
  await expectFullTurn(conversation);
});
