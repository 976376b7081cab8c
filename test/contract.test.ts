/** Compares the responses of the real program with the contract, for valid and for malformed input. */
import { createECDH, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { z } from 'zod';
import { isPublic, pathParams, type Route } from '../src/api/route.ts';
import { type OperationId, operationIds, routes } from '../src/api/routes.ts';
import { sleep } from '../src/base/async.ts';
import { Client } from '../src/client/client.ts';
import type { Agent } from '../src/features/agents/rules.ts';
import { WITH_NODES } from '../src/testing/agent-node.ts';
import { Authenticator } from '../src/testing/authenticator.ts';
import { ROOT, SVC, TestPlane } from '../src/testing/plane.ts';

const PASSWORD = 'quite a long password';

let plane: TestPlane;
let agent: Agent;
let stranger: string;
beforeAll(async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  agent = await plane.agent('echo hello; echo world >&2; exit 3');
  await plane.finished(agent.id);
  stranger = await newUser('eve');
});
afterAll(() => plane.close());

/** Creates a user and returns a token. */
async function newUser(username: string): Promise<string> {
  await plane.client.call('createUser', { body: { username, password: PASSWORD } });
  const login = { username, password: PASSWORD };
  return (await new Client({ url: plane.url, token: null }).call('login', { body: login })).token;
}

/** The command of an agent that speaks ACP and works without delays. */
function speaking(...more: string[]): string[] {
  return [SVC, 'demo-agent', '--speed', '0', '--state', join(plane.folder, 'demo'), ...more];
}

async function firstReview(agent_id: string): Promise<{ id: string }> {
  for (;;) {
    const reviews = await plane.client.call('listReviews', { query: { agent_id } });
    if (Array.isArray(reviews) && reviews[0]) return reviews[0];
    await sleep(20);
  }
}

async function firstElicitation(agent_id: string): Promise<string> {
  for (;;) {
    for await (const { id } of plane.client.all('listElicitations', { query: { agent_id } })) return id;
    await sleep(20);
  }
}

async function configWhen(agent_id: string, phase: string) {
  for (;;) {
    const config = await plane.client.call('getAgentConfig', { params: { agent_id } });
    if (config.phase === phase) return config;
    await sleep(20);
  }
}

interface ApiResponse {
  status: number;
  body: unknown;
  location: string | null;
}

async function request(
  operation: OperationId,
  input: { params?: Record<string, string>; query?: string; body?: unknown; token?: string } = {},
): Promise<ApiResponse> {
  const route: Route = routes[operation];
  const path = pathParams(route.path).reduce(
    (text, { name, rest }) =>
      text.replace(`{${name}${rest ? '*' : ''}}`, encodeURIComponent(input.params?.[name] ?? 'none')),
    route.path as string,
  );
  const response = await fetch(`${plane.url}${path}${input.query ? `?${input.query}` : ''}`, {
    method: route.method,
    headers: {
      ...(!isPublic(route) && { authorization: `Bearer ${input.token ?? plane.token}` }),
      ...(input.body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(input.body !== undefined && { body: JSON.stringify(input.body) }),
  });
  const text = await response.text();
  const location = response.headers.get('location');
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text), location };
}

/** Expects that the body matches the schema exactly, with no missing or extra fields. */
function expectContract(operation: OperationId, answer: ApiResponse): void {
  const answers = routes[operation].answers as Record<number, z.ZodType | null>;
  expect(answers).toHaveProperty(String(answer.status));
  const schema = answers[answer.status] ?? null;
  if (schema === null) expect(answer.body).toBeUndefined();
  else expect(schema.parse(answer.body)).toEqual(answer.body);
  if (answer.status === 201) expect(answer.location).toMatch(/^\/api\//);
}

test('every response matches the contract', async () => {
  const params = { agent_id: agent.id };
  const seen = new Set<OperationId>();
  const check = async (operation: OperationId, input: Parameters<typeof request>[1] = {}) => {
    const answer = await request(operation, input);
    expectContract(operation, answer);
    seen.add(operation);
    return answer;
  };

  await check('getMe');
  await check('changePassword', {
    token: await newUser('ada'),
    body: { current_password: PASSWORD, new_password: `${PASSWORD}!` },
  });
  await check('listSignIns');
  await check('listSignIns', { query: 'limit=1' });
  const token = await check('createToken', { body: { name: 'ci', expires_at: '2099-01-01T00:00:00Z' } });
  await check('listTokens');
  await check('deleteToken', { params: { token_id: (token.body as { id: string }).id } });
  const { origin } = (await check('getRelyingParty')).body as { origin: string };
  const authenticator = new Authenticator(origin);
  const begun = (await check('startPasskeyRegistration')).body as {
    options: Parameters<Authenticator['register']>[0];
  };
  const response = authenticator.register(begun.options);
  const passkey = await check('finishPasskeyRegistration', { body: { response } });
  await check('getMe');
  const started = (await check('startPasskeyLogin')).body as {
    login_id: string;
    options: Parameters<Authenticator['login']>[0];
  };
  const { login_id } = started;
  await check('finishPasskeyLogin', { body: { login_id, response: authenticator.login(started.options) } });
  const of_passkey = { passkey_id: (passkey.body as { id: string }).id };
  await check('renamePasskey', { params: of_passkey, body: { name: 'Key' } });
  await check('deletePasskey', { params: of_passkey });
  const user = await check('createUser', { body: { username: 'tim', password: PASSWORD } });
  const user_id = (user.body as { id: string }).id;
  await check('getUser', { params: { user_id } });
  await check('updateUser', { params: { user_id }, body: { role: 'root' } });
  await check('listUsers');
  await check('deleteUser', { params: { user_id } });
  await check('getPushKey');
  const keys = {
    p256dh: createECDH('prime256v1').generateKeys('base64url'),
    auth: randomBytes(16).toString('base64url'),
  };
  const device = await check('createPushSubscription', {
    body: { endpoint: 'https://push.example.org/x', keys, expirationTime: null },
  });
  await check('listPushSubscriptions');
  await check('listPushSubscriptions', { query: 'limit=1' });
  const subscription_id = (device.body as { id: string }).id;
  await check('deletePushSubscription', { params: { subscription_id } });
  // No device is left, so this sends nothing to a push service.
  await check('testPush', { body: {} });
  await check('rotatePushKeys');
  await check('listPlanes');
  await check('listAudit');
  await check('listAudit', { query: 'limit=2&event=user_created' });
  await check('verifyAudit');
  await check('verifyAudit', { query: `head=${'0'.repeat(64)}` });
  await check('getConfig');
  await check('getDiagnosis');
  await check('updateConfig', { body: { 'limits.streams_per_user': 90 } });
  await check('allowFolder', { body: { setting: 'worktree.repo_roots', path: '/srv/shop' } });
  await check('listNodes');
  await check('listNodes', { query: 'limit=1' });
  await check('listRepositories', { params: { node_id: 'main' } });
  await check('listPresets');
  await check('listPresets', { query: 'refresh=true' });
  await check('listAgentNodes');
  await check('listAgentNodes', { query: 'limit=1' });
  await check('getBootstrapToken');
  await check('rotateBootstrapToken');
  const node = { node_id: 'box' };
  // Nothing listens there.
  await check('registerAgentNode', {
    body: { id: 'box', name: 'The box', grpc_target: 'https://127.0.0.1:1' },
  });
  await check('getAgentNode', { params: node });
  await check('updateAgentNode', { params: node, body: { name: 'Box', default_worktree_root: '/w' } });
  await check('getAgentNodeHealth', { params: node });
  await check('measureNodes');
  await check('listAgentNodes');
  await check('deleteAgentNode', { params: node });

  const made = await check('createAgent', {
    body: { name: 'made', workdir: plane.work, command: 'sleep 100', stdin: true, start: true },
  });
  const other = { agent_id: (made.body as Agent).id };
  await check('sendInput', { params: other, body: { data: 'x', eof: true } });
  await check('restartAgent', { params: other, body: { grace_seconds: 0 } });
  await check('stopAgent', { params: other, body: { grace_seconds: 0 } });
  await check('withdrawPending', { params: other });
  await check('markSeen', { params: other, body: { seq: 1 } });
  await check('listSeen');
  await check('listSeen', { query: 'limit=1' });
  await check('updateAgent', { params: other, body: { name: 'renamed', labels: { a: 'b' } } });
  await check('startAgent', { params: other });
  await check('deleteAgent', { params: other, query: 'force=true' });
  const tree = await check('createAgent', {
    body: { name: 'tree', command: 'true', worktree_mode: 'create_worktree' },
  });
  const { id: worktree_id, workdir: folder } = tree.body as Agent;
  await writeFile(join(folder, 'unsaved'), '');
  const dry_run = 'dry_run=true&delete_worktree=true';
  await check('deleteAgent', { params: { agent_id: worktree_id }, query: dry_run });
  await check('deleteAgent', { params: { agent_id: worktree_id } });
  await check('listWorktrees');
  await check('listWorktrees', { query: 'limit=1&state=kept' });
  await check('deleteWorktree', { params: { worktree_id }, query: 'dry_run=true' });
  await check('deleteWorktree', { params: { worktree_id }, query: 'force=true' });
  await check('listAgents');
  await check('listAgents', { query: 'limit=1&status=failed' });
  await check('getAgent', { params });
  await check('listSessions', { params });
  await check('getLog', { params });
  await check('getLog', { params, query: 'limit=1&type=output,status' });
  await check('searchLog', { params, query: 'q=hello' });
  await check('getChanges', { params });
  await check('findFiles', { params, query: 'q=a' });
  await check('getOpenapi');

  // The agent requests permission in its turn, and waits.
  const speaker = await check('createAgent', {
    body: { name: 'speaker', workdir: plane.work, argv: speaking(), protocol: 'acp', start: true },
  });
  const acp_params = { agent_id: (speaker.body as Agent).id };
  await check('promptAgent', { params: acp_params, body: { text: 'one' } });
  const waits = await check('promptAgent', {
    params: acp_params,
    body: { content: [{ type: 'text', text: 'two' }] },
  });
  const { prompt_id } = waits.body as { prompt_id: string };
  await check('listPrompts', { params: acp_params });
  await check('getPrompt', { params: { ...acp_params, prompt_id } });
  await check('editPrompt', { params: { ...acp_params, prompt_id }, body: { text: 'too' } });
  await check('deletePrompt', { params: { ...acp_params, prompt_id } });
  const review = await firstReview(acp_params.agent_id);
  await check('listReviews');
  await check('listReviews', { query: `limit=1&status=pending&agent_id=${acp_params.agent_id}` });
  await check('getReview', { params: { review_id: review.id } });
  const to = { to_actor_id: `user:${ROOT.username}` };
  await check('routeReview', { params: { review_id: review.id }, body: to });
  await check('respondReview', { params: { review_id: review.id }, body: { decision: 'allow' } });
  const eliciting = [process.execPath, join(import.meta.dirname, '../src/testing/acp-agent.ts'), 'elicits'];
  const elicits = await plane.agent(eliciting, { protocol: 'acp', prompt: 'Ask.' });
  const elicitation_id = await firstElicitation(elicits.id);
  await check('listElicitations');
  await check('listElicitations', { query: `limit=1&status=pending&agent_id=${elicits.id}` });
  await check('getElicitation', { params: { elicitation_id } });
  const entered = { name: 'v1', region: 'eu', checks: ['lint'] };
  const accept = { action: 'accept', content: entered };
  await check('respondElicitation', { params: { elicitation_id }, body: accept });
  await check('getAgentConfig', { params: acp_params });
  await check('setAgentConfig', { params: acp_params, body: { mode_id: 'plan' } });
  await plane.client.call('promptAgent', { params: acp_params, body: { text: '/sleep 100' } });
  await check('cancelTurn', { params: acp_params });
  const signing_in = await check('createAgent', {
    body: { name: 'signs in', workdir: plane.work, argv: speaking('--auth'), protocol: 'acp', start: true },
  });
  const signs = { agent_id: (signing_in.body as Agent).id };
  const { auth_methods } = await configWhen(signs.agent_id, 'auth_required');
  await check('authenticateAgent', { params: signs, body: { method_id: auth_methods[0]!.id } });

  const spec = { members: [{ member_id: 'dev' }] };
  const team = await plane.client.call('createTeam', { body: { name: 'asked', spec } });
  const task = await check('createTask', { params: { team_id: team.id }, body: { title: 'Tidy up' } });
  const { id: task_id, conversation_id } = task.body as { id: string; conversation_id: string };
  const about = { team_id: team.id, task_id, conversation_id };
  await check('listTasks', { params: about });
  await check('listTasks', { params: about, query: 'limit=1&status=open' });
  await check('getTask', { params: about });
  await check('updateTask', { params: about, body: { status: 'cancelled', version: 1 } });
  const message = await check('sendMessage', { params: about, body: { route: 'broadcast', text: 'hello' } });
  const message_id = String((message.body as { id: number }).id);
  await check('getMessage', { params: { ...about, message_id } });
  await check('listMessages', { params: about, query: 'limit=1&q=hello' });
  await check('getConversation', { params: about });
  await check('listConversation', { params: about });
  await check('startTaskRun', { params: about, body: { input: {} } });
  const own = { name: 'team', spec: { members: [{ member_id: 'm' }], steps: [{ step_key: 'a' }] } };
  const of_team = { team_id: ((await check('createTeam', { body: own })).body as { id: string }).id };
  await check('listTeams');
  await check('listTeams', { query: 'limit=1' });
  await check('getTeam', { params: of_team });
  await check('updateTeam', { params: of_team, body: { version: 1, description: 'new' } });
  const of_run = {
    ...of_team,
    run_id: ((await check('createRun', { params: of_team })).body as { id: string }).id,
  };
  const of_step = { ...of_run, step_key: 'a' };
  await check('listRuns', { params: of_team });
  await check('listRuns', { params: of_team, query: 'limit=1' });
  await check('listAllRuns');
  await check('listAllRuns', { query: 'limit=1&status=completed' });
  await check('getRun', { params: of_run });
  await check('findRun', { params: of_run });
  await check('listRunMembers', { params: of_run });
  await check('addStep', { params: of_run, body: { step_key: 'b', member_id: 'm' } });
  await check('listSteps', { params: of_run });
  await check('startStep', { params: of_step });
  await check('requireStepInput', { params: of_step, body: { reason: 'which?' } });
  await check('listWaitingSteps');
  await check('listWaitingSteps', { query: 'limit=1' });
  await check('listWaitingRuns');
  await check('listWaitingRuns', { query: 'limit=1' });
  await check('resumeStep', { params: of_step, body: { input: 'this' } });
  await check('completeStep', { params: of_step, body: { output: { n: 1 } } });
  await check('failStep', { params: { ...of_step, step_key: 'b' }, body: { error_text: 'no' } });
  await check('resumeRun', { params: of_run });
  await check('completeRun', { params: of_run, body: { output: 'done' } });
  await check('restartRun', { params: of_run });
  await check('failRun', { params: of_run, body: { error_text: 'no' } });
  await check('restartRun', { params: of_run });
  await check('cancelRun', { params: of_run });
  await check('deleteRun', { params: of_run, query: 'dry_run=true' });
  await check('deleteRun', { params: of_run });
  await check('deleteTeam', { params: of_team });

  const spare = await plane.client.call('createToken', { body: { name: 'spare' } });
  await check('logout', { token: spare.token });
  const login = { username: 'ada', password: `${PASSWORD}!` };
  const { token: fresh } = (await check('login', { body: login })).body as { token: string };
  await check('refreshToken', { token: fresh });

  // Streams, bytes and pages are not JSON. The others need state that this test no longer has.
  const elsewhere: OperationId[] = [
    'join',
    'checkJoinPin',
    'createJoinChallenge',
    'endSignIn',
    'getChange',
    'getOutput',
    'getDocs',
    'stopAllAgents',
    'followAgent',
    'followAll',
    'sendMail',
    'listMail',
    'getMail',
    'ackMail',
    'listRunMail',
    'listRunTriggers',
    'listTriggers',
    'setTrigger',
    'deleteTrigger',
    'followMessages',
    'followRun',
  ];
  expect(operationIds.filter((operation) => !seen.has(operation))).toEqual(
    operationIds.filter((operation) => elsewhere.includes(operation)),
  );
});

test("every operation returns 404 for another user's agent", async () => {
  const bodies: Partial<Record<OperationId, unknown>> = {
    markSeen: { seq: 1 },
    updateAgent: { name: 'x' },
    sendInput: { data: 'x' },
    promptAgent: { text: 'x' },
    editPrompt: { text: 'x' },
    setAgentConfig: { mode_id: 'x' },
    authenticateAgent: { method_id: 'x' },
  };
  for (const operation of operationIds.filter((id) => routes[id].path.includes('{agent_id}'))) {
    for (const agent_id of [agent.id, 'agt_none', '../agents']) {
      const answer = await request(operation, {
        params: { agent_id, path: 'a' },
        token: stranger,
        query: operation === 'searchLog' ? 'q=x' : '',
        body: bodies[operation],
      });
      expect([operation, answer.status, answer.body]).toEqual([operation, 404, { error: 'agent not found' }]);
    }
  }
});

test('no input causes a server error', async () => {
  const texts = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 30 }),
    fc.constantFrom(
      '',
      ' ',
      '\0',
      '../..',
      '/',
      '-x',
      '\u202e',
      'null',
      '-1',
      '9223372036854775808',
      '1e99',
      'a'.repeat(5_000),
    ),
  );
  const scalars = fc.oneof(texts, fc.integer(), fc.double(), fc.boolean(), fc.constant(null));
  const values = fc.oneof(
    scalars,
    fc.array(scalars, { maxLength: 3 }),
    fc.dictionary(texts, scalars, { maxKeys: 3 }),
  );
  const excluded: OperationId[] = [
    'stopAllAgents',
    'followAgent',
    'followAll',
    'logout',
    'refreshToken',
    'updateConfig',
    'allowFolder',
    'join',
    'checkJoinPin',
    'deleteAgent',
  ];
  const tried = operationIds.filter((operation) => !excluded.includes(operation));

  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...tried),
      fc.array(values, { minLength: 12, maxLength: 12 }),
      texts,
      async (operation, input, text) => {
        const route: Route = routes[operation];
        const fields = fieldsOf(route.body);
        const body = Object.fromEntries(fields.map((name, i) => [name, input[i % input.length]]));
        const query = new URLSearchParams();
        for (const [i, name] of Object.keys(route.query?.shape ?? {}).entries()) {
          if (i % 2 === text.length % 2) query.set(name, text);
        }
        const id = text || 'x';
        const answer = await request(operation, {
          params: {
            agent_id: text.length % 2 ? agent.id : id,
            user_id: id,
            token_id: id,
            sign_in_id: id,
            node_id: id,
            path: id,
          },
          query: query.toString(),
          body: route.method === 'GET' ? undefined : body,
        }).catch((error: Error) => {
          // Bytes and pages are not JSON.
          if (error instanceof SyntaxError && route.raw) return { status: 200 };
          throw error;
        });
        expect(answer.status).toBeLessThan(500);
      },
    ),
    { numRuns: 600 },
  );
  expect(plane.isRunning).toBe(true);
  expect(plane.log).not.toContain('request failed');
});

function fieldsOf(schema: z.ZodType | undefined): string[] {
  return schema && 'shape' in schema ? Object.keys(schema.shape as object) : [];
}
