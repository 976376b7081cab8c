import { expect, test } from 'vitest';
import { Client } from '../client/client.ts';
import { earlyPaths, sendEarly, withEarly } from './early.ts';

const origin = 'http://svc.test';

/** A server that counts the requests of each path. */
function server(answer: () => Response | Error = () => Response.json({ items: [] })) {
  const requests: string[] = [];
  const send: typeof fetch = async (input, init) => {
    const { pathname, search } = new URL(String(input));
    requests.push(`${pathname}${search} ${new Headers(init?.headers).get('authorization')}`);
    const response = answer();
    if (response instanceof Error) throw response;
    return response;
  };
  const clientAfter = (pathname: string, early_token: string | null, token = 'one') =>
    new Client({
      url: origin,
      token,
      fetch: withEarly(sendEarly(send, { origin, pathname }, early_token), send),
    });
  return { requests, clientAfter };
}

test('the first call uses the early answer, and later calls send requests', async () => {
  const { requests, clientAfter } = server();
  const client = clientAfter('/agents', 'one');
  const early = [
    '/api/agents?limit=200 Bearer one',
    '/api/permission-reviews Bearer one',
    '/api/elicitations Bearer one',
    '/api/teams/waiting-steps Bearer one',
    '/api/teams/waiting-runs Bearer one',
  ];
  expect(requests).toEqual(early);
  for await (const _ of client.all('listAgents')) expect.unreachable();
  await client.call('listReviews');
  await client.call('listElicitations');
  expect(requests).toEqual(early);
  await client.call('listReviews');
  expect(requests).toEqual([...early, '/api/permission-reviews Bearer one']);
});

test('a page of another place does not request the agents early', () => {
  const { requests, clientAfter } = server();
  clientAfter('/agents/agt_1', 'one');
  expect(requests).toEqual([
    '/api/permission-reviews Bearer one',
    '/api/elicitations Bearer one',
    '/api/teams/waiting-steps Bearer one',
    '/api/teams/waiting-runs Bearer one',
  ]);
});

test('sends no early request without a session', () => {
  const { requests, clientAfter } = server();
  clientAfter('/agents', null);
  expect(requests).toEqual([]);
});

test('does not use the answer to another token', async () => {
  const { requests, clientAfter } = server();
  await clientAfter('/teams', 'one', 'two').call('listReviews');
  expect(requests.at(-1)).toBe('/api/permission-reviews Bearer two');
});

test('a failed early request is an error of the first call only', async () => {
  const no_network = new TypeError('no network');
  const outcomes = [...earlyPaths('/teams').map(() => no_network), Response.json([])];
  const { clientAfter } = server(() => outcomes.shift()!);
  const client = clientAfter('/teams', 'one');
  await expect(client.call('listReviews')).rejects.toThrow('svc.test');
  expect(await client.call('listReviews')).toEqual([]);
});
