/**
 * Calls every route of the API as every kind of caller: without a token, with an invalid token, with a token for another
 * listener, and as each kind of user: with a sign-in, with an API token for each scope, and with API tokens that are limited
 * to an agent or a team. The expected response follows from the policy and the resource. A route without a row fails the
 * first test. (`access-actor` and `access-node` test the other listeners.)
 */
import { createECDH, randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isPublic, pathParams, type Route } from '../src/api/route.ts';
import { type OperationId, operationIds, routes } from '../src/api/routes.ts';
import { sleep } from '../src/base/async.ts';
import { systemClock } from '../src/base/clock.ts';
import { Client } from '../src/client/client.ts';
import type { Grant, Limits, Scope } from '../src/core/grant.ts';
import { decide, grantableScopes, newGrant, type Owned, scopeOf } from '../src/core/policy.ts';
import { invalid, lacksScope, notAllowedAs, type Problem, problems } from '../src/core/problem.ts';
import type { Caller, Role } from '../src/features/accounts/rules.ts';
import type { Agent } from '../src/features/agents/rules.ts';
import { type ActingTarget, mayActAs } from '../src/features/mailbox/rules/mail.ts';
import type { Step } from '../src/features/runs/rules/run.ts';
import { mintToken } from '../src/link/trust/tokens.ts';
import { WITH_NODES } from '../src/testing/agent-node.ts';
import { Authenticator } from '../src/testing/authenticator.ts';
import { ASKER } from '../src/testing/conversation.ts';
import { is_long } from '../src/testing/long.ts';
import { ROOT, TestPlane } from '../src/testing/plane.ts';

const PASSWORD = 'quite a long password';
const SECRET = 'a shared secret of more than 32 bytes';

// --- callers ----------------------------------------------------------------------------------------------------------

/** The value of an authorization header, and the caller that it authenticates. */
interface Requester {
  name: string;
  authorization: string | null;
  caller: Caller | null;
}

/** The options of an API token in the matrix. */
interface TokenOptions {
  scopes?: Scope[];
  agent_ids?: string[];
  team_ids?: string[];
}

type Username = 'ana' | 'olga' | 'hugo' | 'sven';

let plane: TestPlane;
let requesters: Requester[];
const users = new Map<Username, { id: string; role: Role; token: string; client: Client }>();
const user = (username: Username) => users.get(username)!;
const clientOf = (token: string | null) => new Client({ url: plane.url, token });
const login = (username: string, password = PASSWORD) =>
  clientOf(null).call('login', { body: { username, password } });
const passwordOf = (username: string) => (username === ROOT.username ? ROOT.password : PASSWORD);

/** Creates Olga, who owns everything here, Hugo, a human member of her team, and Sven, who has no access to either. */
async function makeUsers(): Promise<void> {
  const { id } = await plane.client.call('getMe');
  users.set('ana', { id, role: 'root', token: plane.token, client: plane.client });
  for (const username of ['olga', 'hugo', 'sven'] as const) {
    await plane.client.call('createUser', { body: { username, password: PASSWORD } });
    const signed_in = await login(username);
    const { token } = signed_in;
    users.set(username, { id: signed_in.user.id, role: 'user', token, client: clientOf(token) });
  }
}

const callerOf = (username: Username, grant: Grant | null): Caller => {
  const { id: user_id, role } = user(username);
  return { user_id, username, role, token_id: '', grant, ip: null };
};

/** The API tokens of a user: one with the defaults, one for each scope, and limited ones if the user can see the resource. */
function tokensOf(username: Username): Record<string, TokenOptions> {
  const { role } = user(username);
  // What a scope allows depends on the role alone, so each role has one user with them in `npm test`.
  const has_each_scope = is_long || username === 'ana' || username === 'olga';
  const scoped = (has_each_scope ? grantableScopes(role) : []).map(
    (scope) => [`with the scope ${scope}`, { scopes: [scope] }] as const,
  );
  return {
    'with an API token': {},
    ...Object.fromEntries(scoped),
    ...(['ana', 'olga'].includes(username) && { 'limited to an agent': { agent_ids: [solo.agent.id] } }),
    ...(username !== 'sven' && { 'limited to a team': { team_ids: [team.id] } }),
  };
}

async function makeRequesters(): Promise<Requester[]> {
  const made: Requester[] = [];
  const add = (name: string, authorization: string | null, caller: Caller | null = null) =>
    made.push({ name, authorization, caller });

  for (const [username, { role, token, client }] of users) {
    add(username, `Bearer ${token}`, callerOf(username, null));
    for (const [name, options] of Object.entries(tokensOf(username))) {
      const named = await client.call('createToken', { body: { name, ...options } });
      add(`${username}, ${name}`, `bearer  ${named.token}`, callerOf(username, newGrant(role, options)));
    }
  }

  add('a caller without a token', null);
  const ended = (await login('olga')).token;
  await clientOf(ended).call('logout');
  add('a token after logout', `Bearer ${ended}`);
  const spare = await user('olga').client.call('createToken', { body: { name: 'spare' } });
  await user('olga').client.call('deleteToken', { params: { token_id: spare.id } });
  add('a deleted API token', `Bearer ${spare.token}`);
  const brief = { username: 'brief', password: PASSWORD };
  const { id: user_id } = await plane.client.call('createUser', { body: brief });
  const ended_token = (await login('brief')).token;
  await plane.client.call('deleteUser', { params: { user_id } });
  add('a deleted user', `Bearer ${ended_token}`);
  const fallen = await plane.client.call('createUser', { body: { ...brief, role: 'root' } });
  const was_root = (await login('brief')).token;
  await plane.client.call('updateUser', { params: { user_id: fallen.id }, body: { role: 'user' } });
  add('a user who was root before', `Bearer ${was_root}`);

  // Tokens that are valid on another listener.
  const settings = { shared_secret: SECRET, issuer: 'svc', audience: 'svc-internal' };
  const mint = (subject: string, kind: 'actor' | 'link') =>
    mintToken(settings, subject, systemClock, { kind });
  add('an agent, with its session token', `Bearer ${await sessionToken(team.agent)}`);
  add('a holder of the shared secret, as root', `Bearer ${await mint(`user:${ROOT.username}`, 'actor')}`);
  add('a holder of the shared secret, as a plane', `Bearer ${await mint('pln_x', 'link')}`);
  add('the shared secret as a token', `Bearer ${SECRET.replaceAll(' ', '-')}`);
  const { token } = await plane.client.call('getBootstrapToken');
  add('a node, with the bootstrap token', `Bearer ${token}`);
  add(
    'root, with a password',
    `Basic ${Buffer.from(`${ROOT.username}:${ROOT.password}`).toString('base64')}`,
  );
  add('root, with a truncated token', `Bearer ${plane.token.slice(0, -1)}`);
  add('root, with two tokens', `Bearer ${plane.token} ${plane.token}`);
  return made;
}

async function sessionToken({ session_id }: Agent): Promise<string> {
  return (await readFile(join(plane.data_dir, 'actor', `${session_id}.token`), 'utf8')).trim();
}

// --- resources --------------------------------------------------------------------------------------------------------

/** Olga's own resources, and those of the team that has Hugo as a human member. */
const solo = {} as {
  agent: Agent;
  resting: Agent;
  asker: Agent;
  eliciter: Agent;
  /** Deleted, but its worktree was kept. */
  tidied: Agent;
  review_id: string;
  elicitation_id: string;
};
const team = {} as {
  id: string;
  run_id: string;
  agent: Agent;
  resting: Agent;
  review_id: string;
  elicitation_id: string;
  task: { id: string; conversation_id: string };
  message_id: string;
};
/** A second team of the same people, whose runs start no agents. */
const light = {} as { id: string; over: string; again: string };
const mails = new Map<string, string>();

/** An agent that requests permission in its turn, and waits. */

/** An agent that sends an elicitation in its turn, and waits. */
const ELICITING = [...ASKER.slice(0, -1), 'elicits'];

async function makeThings(): Promise<void> {
  const { client } = user('olga');
  const workdir = plane.work;
  const agent = (more: object) =>
    client.call('createAgent', { body: { name: 'own', workdir, ...more } }) as Promise<Agent>;
  solo.agent = await agent({ command: 'exec sleep 1000', start: true });
  solo.resting = await agent({ command: 'true' });
  solo.asker = await agent({ argv: ASKER, protocol: 'acp', prompt: 'Ask.', start: true });
  solo.eliciter = await agent({ argv: ELICITING, protocol: 'acp', prompt: 'Ask.', start: true });

  const outside = { member_id: 'lead' };
  const member = (member_id: string, more: object) => ({ member_id, agent: { workdir, ...more } });
  const made = await client.call('createTeam', {
    body: {
      name: 'whole',
      human_members: ['hugo'],
      spec: {
        leader_member_id: 'lead',
        members: [
          outside,
          member('hand', { command: 'exec sleep 1000' }),
          member('done', { command: 'true' }),
          member('asker', { argv: ASKER, protocol: 'acp' }),
          member('eliciter', { argv: ELICITING, protocol: 'acp' }),
        ],
        steps: [
          { step_key: 'work', member_id: 'hand' },
          { step_key: 'past', member_id: 'done' },
          { step_key: 'ask', member_id: 'asker', prompt: 'Ask.' },
          { step_key: 'elicit', member_id: 'eliciter', prompt: 'Ask.' },
        ],
      },
    },
  });
  team.id = made.id;
  const params = { team_id: team.id };
  team.task = await client.call('createTask', { params, body: { title: 'Tidy up' } });
  const of_task = { ...params, task_id: team.task.id };
  team.run_id = (await client.call('startTaskRun', { params: of_task, body: {} })).id;
  const message = await client.call('sendMessage', {
    params: of_task,
    body: { route: 'broadcast', text: 'hello' },
  });
  team.message_id = String(message.id);
  team.agent = await agentOf('work', 'running');
  team.resting = await agentOf('past', 'completed');
  await agentOf('ask', 'running');
  for (;;) {
    const waiting = (await client.call('listReviews', { query: {} })) as { id: string; agent_id: string }[];
    if (waiting.length < 2) await sleep(20);
    else {
      const own = waiting.find(({ agent_id }) => agent_id === solo.asker.id)!;
      solo.review_id = own.id;
      team.review_id = waiting.find((one) => one !== own)!.id;
      break;
    }
  }
  const elicited = async (owned: boolean) => {
    for (;;) {
      const waiting = client.all('listElicitations', { query: { status: 'pending' } });
      for await (const { id, agent_id } of waiting) if ((agent_id === solo.eliciter.id) === owned) return id;
      await sleep(20);
    }
  };
  solo.tidied = await client.call('createAgent', {
    body: { name: 'tidied', command: 'true', worktree_mode: 'create_worktree' },
  });
  await writeFile(join(solo.tidied.workdir, 'unsaved'), '');
  await client.call('deleteAgent', { params: { agent_id: solo.tidied.id } });
  solo.elicitation_id = await elicited(true);
  team.elicitation_id = await elicited(false);
  for (const to of ['lead', 'hand', 'user:olga']) mails.set(to, String((await mail('user:olga', to)).id));

  const spec = { members: [{ member_id: 'm' }], steps: [{ step_key: 'a' }] };
  light.id = (await client.call('createTeam', { body: { name: 'light', human_members: ['hugo'], spec } })).id;
  const begin = () => client.call('createRun', { params: { team_id: light.id }, body: {} });
  light.again = (await begin()).id;
  light.over = (await begin()).id;
  const over = { team_id: light.id, run_id: light.over };
  await client.call('completeStep', { params: { ...over, step_key: 'a' }, body: {} });
  while ((await client.call('getRun', { params: over })).status !== 'completed') await sleep(20);
}

async function agentOf(step_key: string, status: Step['status']): Promise<Agent> {
  const { client } = user('olga');
  const params = { team_id: team.id, run_id: team.run_id };
  for (;;) {
    const step = (await client.call('listSteps', { params })).find((one) => one.step_key === step_key)!;
    // A step names its agent shortly before the agent exists.
    if (step.status === status) {
      const agent = await client.call('getAgent', { params: { agent_id: step.agent_id! } });
      if (status !== 'running' || agent.status === 'running') return agent;
    }
    await sleep(20);
  }
}

function mail(from_actor_id: string, to_actor_id: string) {
  const body = { run_id: team.run_id, from_actor_id, to_actor_id, payload: {} };
  return user('olga').client.call('sendMail', { body });
}

// --- expectations -----------------------------------------------------------------------------------------------------

/** The status and, for an error, its message. */
type Outcome = [status: number, error?: string];

interface RequestInput {
  params?: Record<string, string>;
  query?: Record<string, string>;
  body?: unknown;
}

interface Row {
  /** Distinguishes several rows of a route. */
  name?: string;
  /** Absent: the policy decides by the caller alone. */
  resource?: () => Owned;
  /** The error for a resource that the caller may not see. */
  hidden?: () => Problem;
  /** Refuses callers for a reason that the policy does not know. */
  refuses?: (caller: Caller) => Problem | null;
  buildInput?: (requester: Requester) => RequestInput | Promise<RequestInput>;
  /** The response for callers that may make the call. */
  passes: Outcome;
  /** The call may end its credential, so every call uses a new one. */
  ends_credential?: true;
}

const own = ({ id: agent_id }: Agent): Owned => ({ owner_id: user('olga').id, agent_id, team_id: null });
const ofTeam = (team_id = team.id, agent_id: string | null = null): Owned => ({
  owner_id: user('olga').id,
  human_ids: [user('olga').id, user('hugo').id],
  agent_id,
  team_id,
});
/** Whether a caller can see a resource, whatever the scopes of its token: the route checks those. */
const reaches = ({ grant, ...caller }: Caller, resource: Owned) => {
  const full_grant = grant && { scopes: grantableScopes('root'), limits: grant.limits };
  return decide({ ...caller, grant: full_grant }, 'team.read', resource) === 'allow';
};
const problem = (made: Problem): Outcome => [statuses[made.kind as keyof typeof statuses], made.message];
const statuses = {
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  invalid: 400,
  conflict: 409,
} as const;

/** Rows of a route about an agent: one of Olga's, and one of the team. */
function aboutAgent(
  passes: Outcome | { solo: Outcome; team: Outcome },
  buildInput: (name: 'solo' | 'team') => RequestInput = () => ({}),
  which: 'agent' | 'resting' = 'agent',
): Row[] {
  return (['solo', 'team'] as const).map((name) => ({
    name: `${name} ${which}`,
    resource: () => (name === 'solo' ? own(solo[which]) : ofTeam(team.id, team[which].id)),
    hidden: problems.agentNotFound,
    buildInput: () => {
      const { params, ...rest } = buildInput(name);
      return { params: { agent_id: { solo, team }[name][which].id, ...params }, ...rest };
    },
    passes: Array.isArray(passes) ? passes : passes[name],
  }));
}

function aboutReview(passes: Outcome, body?: unknown): Row[] {
  return (['solo', 'team'] as const).map((name) => ({
    name: `${name} review`,
    resource: () => (name === 'solo' ? own(solo.asker) : ofTeam()),
    hidden: problems.reviewNotFound,
    buildInput: () => ({ params: { review_id: { solo, team }[name].review_id }, body }),
    passes,
  }));
}

function aboutElicitation(passes: Outcome, body?: unknown): Row[] {
  return (['solo', 'team'] as const).map((name) => ({
    name: `${name} elicitation`,
    resource: () => (name === 'solo' ? own(solo.eliciter) : ofTeam()),
    hidden: problems.elicitationNotFound,
    buildInput: () => ({ params: { elicitation_id: { solo, team }[name].elicitation_id }, body }),
    passes,
  }));
}

/** A row of a route within a team. */
function inTeam(passes: Outcome, buildInput: () => RequestInput = () => ({})): Row {
  return {
    resource: () => ofTeam(),
    hidden: problems.teamNotFound,
    buildInput: () => {
      const { params, ...rest } = buildInput();
      const { task } = team;
      const of_task = { task_id: task.id, conversation_id: task.conversation_id };
      return { params: { team_id: team.id, ...of_task, message_id: team.message_id, ...params }, ...rest };
    },
    passes,
  };
}

/** A row of a route about a run that has ended, so that the call changes nothing. */
function aboutRun(passes: Outcome, body?: unknown): Row {
  const params = () => ({ team_id: light.id, run_id: light.over, step_key: 'a' });
  return {
    resource: () => ofTeam(light.id),
    hidden: problems.teamNotFound,
    buildInput: () => ({ params: params(), body }),
    passes,
  };
}

/** The actors that callers act as. */
const actors: Record<string, ActingTarget> = {
  'user:olga': { kind: 'human', username: 'olga' },
  'user:hugo': { kind: 'human', username: 'hugo' },
  lead: { kind: 'member', has_no_agent: true },
  hand: { kind: 'member', has_no_agent: false },
};
const actorId = (name: string) => (name.startsWith('user:') ? name : `${name}@${team.id}`);

/** Rows of a route that acts as an actor, in a run that the caller must see, or in any run. */
function asActor(
  passes: Outcome,
  buildInput: (actor_id: string) => RequestInput,
  where: 'run' | 'anywhere',
): Row[] {
  return Object.entries(actors).map(([name, as]) => ({
    name: `as ${name}, ${where}`,
    refuses: (caller) => {
      const works = reaches(caller, ofTeam());
      if (!works && where === 'run') return problems.runNotFound();
      // Only callers that see the team learn whether it has such a member.
      if (!works && as.kind === 'member') return invalid(`unknown actor: ${actorId(name)}`);
      return mayActAs(caller, as) ? null : notAllowedAs(actorId(name));
    },
    buildInput: () => buildInput(actorId(name)),
    passes,
  }));
}

/** Rows of a route about a message to an actor. */
function aboutMail(may: (caller: Caller, to: ActingTarget) => boolean): Row[] {
  return ['lead', 'hand', 'user:olga'].map(
    (to): Row => ({
      name: `to ${to}`,
      refuses: (caller) => (may(caller, actors[to]!) ? null : problems.messageNotFound()),
      buildInput: () => ({ params: { message_id: mails.get(to)! } }),
      passes: [200],
    }),
  );
}

const sees = (caller: Caller) => reaches(caller, ofTeam());
const onlyOlga = (made: () => Problem) => (caller: Caller) => (caller.username === 'olga' ? null : made());
/** An API token can neither be refreshed nor create other credentials. */
const notByApi = ({ grant }: Caller) => (grant ? problems.notAllowed() : null);
const plain: Row = { passes: [200] };
const missing = (made: () => Problem, params: Record<string, string>, body?: unknown): Row => ({
  buildInput: () => ({ params, body }),
  passes: problem(made()),
});
const over: Outcome = [409, 'run is completed'];
const stepOver: Outcome = [409, 'step is completed'];
const notAcp = problem(problems.agentNotAcp());
let made = 0;
/** A browser's push subscription. Nothing is sent to it. */
const device = (name: string) => ({
  endpoint: `https://push.example.org/${name}`,
  keys: {
    p256dh: createECDH('prime256v1').generateKeys('base64url'),
    auth: randomBytes(16).toString('base64url'),
  },
});

/** Starts a registration for a user; returns an authenticator and its response. */
async function begun(username: Username) {
  const { client } = user(username);
  const { options } = await client.call('startPasskeyRegistration');
  const key = new Authenticator((await client.call('getRelyingParty')).origin!);
  return { key, response: key.register(options) };
}
async function passkeyOf(username: Username): Promise<{ passkey_id: string; key: Authenticator }> {
  const { key, response } = await begun(username);
  const { id } = await user(username).client.call('finishPasskeyRegistration', { body: { response } });
  return { passkey_id: id, key };
}
let olgas: ReturnType<typeof passkeyOf> | undefined;

const rows: Record<OperationId, Row | Row[]> = {
  join: {
    buildInput: () => ({ body: { token: 'x', pin: '12345678', username: 'new', password: PASSWORD } }),
    passes: problem(problems.rootAlreadyInitialized()),
  },
  checkJoinPin: {
    buildInput: () => ({ body: { token: 'x', pin: '12345678' } }),
    passes: problem(problems.rootAlreadyInitialized()),
  },
  createJoinChallenge: { passes: problem(problems.rootAlreadyInitialized()) },
  login: { buildInput: () => ({ body: { username: 'sven', password: PASSWORD } }), passes: [200] },
  logout: { passes: [204], ends_credential: true },
  refreshToken: {
    refuses: notByApi,
    passes: [200],
    ends_credential: true,
  },
  getMe: plain,
  changePassword: {
    buildInput: () => ({ body: { current_password: 'not this one', new_password: PASSWORD } }),
    passes: problem(problems.invalidLogin()),
  },
  listSignIns: plain,
  endSignIn: {
    name: 'Olga’s',
    refuses: onlyOlga(problems.sessionNotFound),
    buildInput: async ({ caller }) => {
      if (caller === null) return {};
      const before = await signInsOf('olga');
      await login('olga');
      const sign_in_id = (await signInsOf('olga')).find((id) => !before.includes(id))!;
      return { params: { sign_in_id } };
    },
    passes: [204],
  },
  listTokens: plain,
  createToken: {
    refuses: notByApi,
    buildInput: () => ({ body: { name: `made-${made++}` } }),
    passes: [201],
  },
  deleteToken: {
    name: 'Olga’s',
    refuses: onlyOlga(problems.tokenNotFound),
    buildInput: async () => {
      const { id } = await user('olga').client.call('createToken', { body: { name: `spare-${made++}` } });
      return { params: { token_id: id } };
    },
    passes: [204],
  },

  getRelyingParty: plain,
  startPasskeyRegistration: { refuses: notByApi, passes: [200] },
  finishPasskeyRegistration: {
    refuses: notByApi,
    buildInput: async ({ caller }) => {
      const { response } = await begun((caller?.username ?? 'olga') as Username);
      return { body: { response } };
    },
    passes: [201],
  },
  startPasskeyLogin: plain,
  finishPasskeyLogin: {
    buildInput: async () => {
      const { login_id, options } = await clientOf(null).call('startPasskeyLogin');
      olgas ??= passkeyOf('olga');
      return { body: { login_id, response: (await olgas).key.login(options) } };
    },
    passes: [200],
  },
  renamePasskey: {
    name: 'Olga’s',
    refuses: onlyOlga(problems.passkeyNotFound),
    buildInput: async () => {
      olgas ??= passkeyOf('olga');
      return { params: { passkey_id: (await olgas).passkey_id }, body: { name: `made-${made++}` } };
    },
    passes: [200],
  },
  deletePasskey: {
    name: 'Olga’s',
    refuses: (caller) => onlyOlga(problems.passkeyNotFound)(caller) ?? notByApi(caller),
    buildInput: async () => ({ params: { passkey_id: (await passkeyOf('olga')).passkey_id } }),
    passes: [204],
  },

  getPushKey: plain,
  listPushSubscriptions: plain,
  createPushSubscription: {
    // Notifications contain what only the scope `read` gives access to.
    refuses: ({ grant }) => (grant && !grant.scopes.includes('read') ? lacksScope('read') : null),
    buildInput: ({ caller }) => ({ body: device(caller?.username ?? 'nobody') }),
    passes: [201],
  },
  deletePushSubscription: {
    name: 'Olga’s',
    refuses: onlyOlga(problems.pushNotFound),
    buildInput: async () => {
      const { id } = await user('olga').client.call('createPushSubscription', { body: device('olga') });
      return { params: { subscription_id: id } };
    },
    passes: [204],
  },
  testPush: missing(problems.pushNotFound, {}, { subscription_id: 'none' }),
  rotatePushKeys: plain,

  listAgents: plain,
  createAgent: {
    buildInput: () => ({ body: { name: 'made', workdir: plane.work, command: 'true' } }),
    passes: [201],
  },
  getAgent: aboutAgent([200]),
  listSeen: plain,
  markSeen: aboutAgent([200], () => ({ body: { seq: 0 } })),
  updateAgent: aboutAgent([200], () => ({ body: { labels: { seen: 'yes' } } })),
  deleteAgent: aboutAgent(problem(problems.agentRunning())),
  listWorktrees: plain,
  deleteWorktree: {
    resource: () => own(solo.tidied),
    hidden: problems.worktreeNotFound,
    buildInput: () => ({ params: { worktree_id: solo.tidied.id }, query: { dry_run: 'true' } }),
    passes: [200],
  },
  startAgent: aboutAgent(problem(problems.agentAlreadyRunning())),
  stopAgent: aboutAgent(problem(problems.agentNotRunning()), () => ({ body: {} }), 'resting'),
  restartAgent: aboutAgent([200], () => ({ body: { grace_seconds: 0 } }), 'resting'),
  // Not carried out, because it would stop the agents of the other rows.
  stopAllAgents: {
    buildInput: () => ({ body: { grace_seconds: -1 } }),
    passes: [400, 'grace_seconds must be an integer from 0 to 60'],
  },
  withdrawPending: aboutAgent([204]),
  sendInput: aboutAgent(problem(problems.agentNoStdin()), () => ({ body: { data: 'x' } })),
  listSessions: aboutAgent([200]),
  getOutput: aboutAgent([200]),
  getLog: aboutAgent([200]),
  searchLog: aboutAgent([200], () => ({ query: { q: 'x' } })),
  getChanges: aboutAgent([200]),
  getChange: aboutAgent(problem(problems.fileNotFound()), () => ({ params: { path: 'none' } })),
  findFiles: aboutAgent([200]),
  followAgent: aboutAgent([200]),
  followAll: plain,

  promptAgent: aboutAgent(notAcp, () => ({ body: { text: 'x' } })),
  listPrompts: aboutAgent([200]),
  getPrompt: aboutAgent(problem(problems.promptNotFound()), () => ({ params: { prompt_id: 'none' } })),
  editPrompt: aboutAgent(problem(problems.promptNotFound()), () => ({
    params: { prompt_id: 'none' },
    body: { text: 'x' },
  })),
  deletePrompt: aboutAgent(problem(problems.promptNotFound()), () => ({ params: { prompt_id: 'none' } })),
  cancelTurn: aboutAgent(notAcp),
  getAgentConfig: aboutAgent(notAcp),
  setAgentConfig: aboutAgent(notAcp, () => ({ body: { mode_id: 'plan' } })),
  authenticateAgent: aboutAgent(notAcp, () => ({ body: { method_id: 'x' } })),

  listReviews: plain,
  getReview: aboutReview([200]),
  respondReview: aboutReview(problem(problems.unknownOption()), { option_id: 'none' }),
  routeReview: aboutReview([400, 'unknown actor: user:none'], { to_actor_id: 'user:none' }),

  listElicitations: plain,
  getElicitation: aboutElicitation([200]),
  respondElicitation: aboutElicitation([400, 'content.name is required'], { action: 'accept', content: {} }),

  listTasks: inTeam([200]),
  createTask: inTeam([201], () => ({ body: { title: 'More' } })),
  getTask: inTeam([200]),
  updateTask: inTeam(problem(problems.taskChanged()), () => ({ body: { title: 'x', version: 999 } })),
  startTaskRun: inTeam(problem(problems.taskHasRun()), () => ({ body: {} })),
  listMessages: inTeam([200]),
  sendMessage: inTeam([201], () => ({ body: { route: 'to_leader', text: 'hello' } })),
  followMessages: inTeam([200]),
  getMessage: inTeam([200]),
  getConversation: inTeam([200]),
  listConversation: inTeam([200]),

  listTeams: plain,
  createTeam: {
    buildInput: () => ({ body: { name: `made-${made++}`, spec: { members: [{ member_id: 'm' }] } } }),
    passes: [201],
  },
  getTeam: inTeam([200]),
  updateTeam: inTeam(problem(problems.teamChanged()), () => ({ body: { name: 'x', version: 999 } })),
  deleteTeam: {
    ...inTeam(problem(problems.teamHasRuns())),
    // Callers that see the team get `not allowed` instead of `team not found`.
    refuses: (caller) => {
      const deletes = decide(caller, 'team.delete', ofTeam()) === 'allow';
      return sees(caller) && !deletes ? problems.notAllowed() : null;
    },
  },

  listRuns: inTeam([200]),
  listAllRuns: plain,
  createRun: { ...aboutRun([201], {}) },
  getRun: aboutRun([200]),
  deleteRun: {
    ...aboutRun([200]),
    // Callers that see the team get `not allowed` instead of `team not found`.
    refuses: (caller) => {
      const over = ofTeam(light.id);
      const deletes = decide(caller, 'run.delete', over) === 'allow';
      return reaches(caller, over) && !deletes ? problems.notAllowed() : null;
    },
    buildInput: () => ({ params: { team_id: light.id, run_id: light.over }, query: { dry_run: 'true' } }),
  },
  findRun: { ...aboutRun([200]), hidden: problems.runNotFound },
  listRunMembers: { ...aboutRun([200]), hidden: problems.runNotFound },
  cancelRun: aboutRun(over),
  resumeRun: aboutRun(problem(problems.runCompleted())),
  restartRun: {
    ...aboutRun([200]),
    buildInput: () => ({ params: { team_id: light.id, run_id: light.again } }),
  },
  completeRun: aboutRun(over, {}),
  failRun: aboutRun(over, { error_text: 'x' }),
  listSteps: aboutRun([200]),
  listWaitingSteps: plain,
  listWaitingRuns: plain,
  addStep: aboutRun(problem(problems.memberUndefined()), { step_key: 'b', member_id: 'none' }),
  startStep: aboutRun(stepOver),
  completeStep: aboutRun(stepOver, {}),
  failStep: aboutRun(stepOver, { error_text: 'x' }),
  requireStepInput: aboutRun(stepOver, { reason: 'x' }),
  resumeStep: aboutRun(stepOver, {}),
  followRun: aboutRun([200]),

  sendMail: asActor(
    [201],
    (from_actor_id) => ({
      body: { run_id: team.run_id, from_actor_id, to_actor_id: 'user:olga', payload: {} },
    }),
    'run',
  ),
  listMail: [
    ...asActor([200], (actor_id) => ({ params: { actor_id }, query: { run_id: team.run_id } }), 'run'),
    ...asActor([200], (actor_id) => ({ params: { actor_id } }), 'anywhere'),
  ],
  getMail: aboutMail(sees),
  ackMail: aboutMail((caller, to) => sees(caller) && mayActAs(caller, to)),
  listRunMail: { ...aboutRun([200]), hidden: problems.runNotFound },
  listRunTriggers: { ...aboutRun([200]), hidden: problems.runNotFound },
  listTriggers: [
    ...asActor([200], (actor_id) => ({ params: { actor_id }, query: { run_id: team.run_id } }), 'run'),
    ...asActor([200], (actor_id) => ({ params: { actor_id } }), 'anywhere'),
  ],
  setTrigger: asActor(
    [201],
    (actor_id) => ({
      params: { actor_id },
      body: { run_id: team.run_id, every_seconds: 86_400, payload: {} },
    }),
    'run',
  ),
  deleteTrigger: asActor(
    problem(problems.triggerNotFound()),
    (actor_id) => ({ params: { actor_id, trigger_id: 'none' } }),
    'anywhere',
  ),

  listNodes: plain,
  listRepositories: [
    { buildInput: () => ({ params: { node_id: 'main' } }), passes: [200] },
    missing(problems.nodeNotFound, { node_id: 'none' }),
  ],
  listAgentNodes: plain,
  registerAgentNode: {
    buildInput: () => ({ body: { id: 'box', name: 'box', grpc_target: 'http://box' } }),
    passes: problem(problems.grpcTargetInvalid()),
  },
  getAgentNode: missing(problems.nodeNotFound, { node_id: 'none' }),
  updateAgentNode: missing(problems.nodeNotFound, { node_id: 'none' }, { name: 'x' }),
  deleteAgentNode: missing(problems.nodeNotFound, { node_id: 'none' }),
  getAgentNodeHealth: missing(problems.nodeNotFound, { node_id: 'none' }),
  measureNodes: plain,
  getBootstrapToken: plain,
  rotateBootstrapToken: plain,
  listPresets: plain,

  listUsers: plain,
  createUser: {
    buildInput: () => ({ body: { username: 'olga', password: PASSWORD } }),
    passes: problem(problems.usernameTaken()),
  },
  getUser: missing(problems.userNotFound, { user_id: 'none' }),
  updateUser: missing(problems.userNotFound, { user_id: 'none' }, { role: 'root' }),
  deleteUser: missing(problems.userNotFound, { user_id: 'none' }),
  listPlanes: plain,
  listAudit: plain,
  verifyAudit: plain,
  getConfig: plain,
  getDiagnosis: plain,
  updateConfig: { buildInput: () => ({ body: { 'retention.days': null } }), passes: [200] },
  allowFolder: {
    buildInput: () => ({ body: { setting: 'worktree.repo_roots', path: '/srv/shop' } }),
    passes: [200],
  },
  getOpenapi: plain,
  getDocs: plain,
};

async function signInsOf(username: Username): Promise<string[]> {
  const listed = (await user(username).client.call('listSignIns', { query: {} })) as { id: string }[];
  return listed.map(({ id }) => id);
}

function expected(route: Route, row: Row, requester: Requester): Outcome {
  const { authorization, caller } = requester;
  if (isPublic(route)) return row.passes;
  if (authorization === null) return problem(problems.missingToken());
  if (caller === null) return problem(problems.invalidToken());
  switch (decide(caller, route.action, row.resource?.())) {
    case 'hide':
      return problem(row.refuses?.(caller) ?? row.hidden!());
    case 'root_required':
      return problem(problems.rootRequired());
    case 'lacks_scope':
      return problem(lacksScope(scopeOf(route.action)!));
    case 'limited':
      return problem(problems.tokenLimited());
    case 'allow': {
      const refusal = row.refuses?.(caller);
      return refusal ? problem(refusal) : row.passes;
    }
    default:
      return problem(problems.notAllowed());
  }
}

/** Sends a request as any client could. Of a stream, it reads only the headers. */
async function request(
  route: Route,
  { params = {}, query, body }: RequestInput,
  authorization: string | null,
  method: string = route.method,
): Promise<Outcome> {
  const path = pathParams(route.path).reduce(
    (text, { name, rest }) =>
      text.replace(`{${name}${rest ? '*' : ''}}`, encodeURIComponent(params[name] ?? 'none')),
    route.path as string,
  );
  const stop = new AbortController();
  const response = await fetch(`${plane.url}${path}${query ? `?${new URLSearchParams(query)}` : ''}`, {
    method,
    signal: stop.signal,
    headers: {
      ...(authorization !== null && { authorization }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const { status } = response;
  const is_stream = response.headers.get('content-type') === 'text/event-stream';
  if (status === 200) expect(is_stream).toBe(route.raw === 'sse');
  if (!is_stream && method !== 'HEAD' && status >= 400) {
    return [status, ((await response.json()) as { error: string }).error];
  }
  stop.abort();
  return [status];
}

/** Creates a credential of the same kind, for a single request. */
async function fresh({ username, grant }: Caller): Promise<string> {
  const { token } = await login(username, passwordOf(username));
  if (!grant) return `Bearer ${token}`;
  const body = { name: `fresh-${made++}`, scopes: [...grant.scopes], ...listed(grant.limits) };
  const named = await clientOf(token).call('createToken', { body });
  return `Bearer ${named.token}`;
}

beforeAll(async () => {
  plane = await TestPlane.open({
    env: { ...WITH_NODES, SVC_INTERNAL_GRPC_AUTH_SHARED_SECRET: SECRET, SVC_LIMITS_STREAMS_PER_USER: '1000' },
  });
  await makeUsers();
  await makeThings();
  requesters = await makeRequesters();
}, 60_000);
afterAll(() => plane?.close());

test('the table has a row for every route', () => {
  expect(Object.keys(rows).toSorted()).toEqual(operationIds.toSorted());
});

/** All callers, in three groups. `cells_min` is the minimum number of responses to compare. */
const groups: { name: string; has: (requester: Requester) => boolean; cells_min: number }[] = [
  {
    name: 'sign-ins and invalid tokens',
    has: ({ caller }) => !caller?.grant,
    cells_min: is_long ? 4_300 : 2_000,
  },
  {
    name: 'API tokens by scope',
    has: ({ caller }) => caller?.grant?.limits === null,
    cells_min: is_long ? 4_500 : 2_000,
  },
  { name: 'limited API tokens', has: ({ caller }) => Boolean(caller?.grant?.limits), cells_min: 1_200 },
];

/**
 * `npm run test:long` calls each route as each caller. In `npm test`, callers with an invalid token, or with an API token for a scope that
 * the route does not need, call every fourth route, each of them other ones.
 */
function calls({ caller }: Requester, route: Route, turn: number): boolean {
  if (is_long || turn % 4 === 0) return true;
  if (caller === null) return false;
  if (isPublic(route) || !caller.grant || caller.grant.limits !== null) return true;
  const needed = scopeOf(route.action);
  return needed !== null && caller.grant.scopes.includes(needed);
}

test.each(groups)('every route follows the policy: $name', async ({ has, cells_min }) => {
  const wrong: unknown[] = [];
  let cells = 0;
  let row_count = 0;
  const callers = requesters.filter(has);
  for (const operation of operationIds) {
    const route: Route = routes[operation];
    for (const row of [rows[operation]].flat()) {
      row_count++;
      for (const [at, requester] of callers.entries()) {
        if (!calls(requester, route, row_count + at)) continue;
        const expected_answer = expected(route, row, requester);
        const input = (await row.buildInput?.(requester)) ?? {};
        const authorization =
          row.ends_credential && requester.caller ? await fresh(requester.caller) : requester.authorization;
        const got = await request(route, input, authorization);
        cells++;
        const cell = `${operation}${row.name ? ` (${row.name})` : ''} by ${requester.name}`;
        if (JSON.stringify(got) !== JSON.stringify(expected_answer))
          wrong.push([cell, { got, wants: expected_answer }]);
        if (route.method !== 'GET') continue;
        const [head] = await request(route, input, authorization, 'HEAD');
        cells++;
        if (head !== expected_answer[0])
          wrong.push([`HEAD ${cell}`, { got: head, wants: expected_answer[0] }]);
      }
    }
  }
  expect(wrong).toEqual([]);
  expect(cells).toBeGreaterThan(cells_min);
  expect(plane.log).not.toContain('request failed');
});

/** The limits of a grant in the form of a request, which leaves out empty lists. */
function listed(limits: Limits | null): TokenOptions {
  if (limits === null) return {};
  const { agent_ids, team_ids } = limits;
  return {
    ...(agent_ids.length > 0 && { agent_ids: [...agent_ids] }),
    ...(team_ids.length > 0 && { team_ids: [...team_ids] }),
  };
}

/** Records, each with the list that contains it, and whether the fleet feed contains it. */
const shown = (): { id: string; resource: Owned; list?: OperationId; streamed: boolean }[] => [
  { list: 'listAgents', id: solo.agent.id, resource: own(solo.agent), streamed: true },
  { list: 'listAgents', id: solo.resting.id, resource: own(solo.resting), streamed: true },
  { list: 'listAgents', id: team.agent.id, resource: ofTeam(team.id, team.agent.id), streamed: true },
  { list: 'listWorktrees', id: solo.tidied.id, resource: own(solo.tidied), streamed: true },
  { list: 'listReviews', id: solo.review_id, resource: own(solo.asker), streamed: true },
  { list: 'listReviews', id: team.review_id, resource: ofTeam(), streamed: true },
  { list: 'listElicitations', id: solo.elicitation_id, resource: own(solo.eliciter), streamed: true },
  { list: 'listElicitations', id: team.elicitation_id, resource: ofTeam(), streamed: true },
  { list: 'listTeams', id: team.id, resource: ofTeam(), streamed: false },
  { list: 'listTeams', id: light.id, resource: ofTeam(light.id), streamed: false },
  { list: 'listAllRuns', id: team.run_id, resource: ofTeam(), streamed: true },
  { id: team.task.id, resource: ofTeam(), streamed: true },
  { list: 'listAllRuns', id: light.over, resource: ofTeam(light.id), streamed: true },
];

test('lists and the fleet feed show each caller only what it may see', async () => {
  let checked = 0;
  for (const { name, authorization, caller } of requesters) {
    if (caller === null || decide(caller, 'agents.list') !== 'allow') continue;
    checked++;
    const headers = { authorization: authorization! };
    const stream = await fetch(`${plane.url}/api/events?after=0`, { headers });
    const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
    // Earlier changes precede the newest one.
    const newest = await changeSomething(caller);
    let received = '';
    while (!received.includes(newest)) received += (await reader.read()).value;
    await reader.cancel();
    for (const { id, resource, list, streamed } of shown()) {
      const seen = decide(caller, 'team.read', resource) === 'allow';
      expect([name, id, received.includes(`"id":"${id}"`)]).toEqual([name, id, seen && streamed]);
      if (list === undefined) continue;
      const response = await fetch(plane.url + routes[list].path, { headers });
      const ids = ((await response.json()) as { id: string }[]).map((item) => item.id);
      expect([name, list, id, ids.includes(id)]).toEqual([name, list, id, seen]);
    }
  }
  expect(checked).toBeGreaterThan(12);
});

/** Changes something that the caller may see; returns a text that the change contains. */
async function changeSomething({ username, grant }: Caller): Promise<string> {
  const new_name = `last-${made++}`;
  const { client } = user(username as Username);
  if (!grant?.limits) {
    await client.call('createAgent', { body: { name: new_name, workdir: plane.work, command: 'true' } });
    return new_name;
  }
  const agent_id = grant.limits.agent_ids[0] ?? team.agent.id;
  const body = { labels: { seen: new_name } };
  await user('olga').client.call('updateAgent', { params: { agent_id }, body });
  return new_name;
}

test('what others have does not exist, whatever is wrong with the request', async () => {
  const known: Record<string, string> = {
    ...{ agent_id: solo.agent.id, review_id: solo.review_id, elicitation_id: solo.elicitation_id },
    ...{ team_id: team.id, run_id: team.run_id, task_id: team.task.id },
  };
  const authorization = `Bearer ${user('sven').token}`;
  let checked = 0;
  for (const operation of operationIds) {
    const route: Route = routes[operation];
    const [name] = pathParams(route.path).map((param) => param.name);
    if (name === undefined || known[name] === undefined || !(route.body || route.query)) continue;
    checked++;
    const path = route.path.replaceAll(/\{(\w+)\*?\}/g, (_, param: string) => known[param] ?? 'x');
    const invalid_body = { body: '{', headers: { 'content-type': 'application/json', authorization } };
    const answer = await fetch(`${plane.url}${path}?after=x&limit=x&cursor=x`, {
      method: route.method,
      ...(route.method === 'GET' ? { headers: { authorization } } : invalid_body),
    });
    expect([operation, answer.status, ((await answer.json()) as { error: string }).error]).toEqual([
      ...[operation, 404, expect.stringMatching(/ not found$/)],
    ]);
  }
  expect(checked).toBeGreaterThan(30);
  const nobody = { params: { node_id: 'none' }, body: {} };
  await expect(plane.client.call('updateAgentNode', nobody)).rejects.toThrow('agent node not found');
});

test('an unknown route returns 404 with a valid token, and 401 without one', async () => {
  for (const { name, authorization, caller } of requesters) {
    const refused = authorization === null ? problems.missingToken() : problems.invalidToken();
    for (const path of [
      '/api/none',
      '/api/admin/none',
      '/api/agents/x/none',
      '/API/agents',
      '/api//agents',
    ]) {
      const got = await request({ ...routes.getMe, path } as Route, {}, authorization);
      const expected_answer = problem(caller === null ? refused : problems.notFound());
      expect([name, path, got]).toEqual([name, path, expected_answer]);
    }
    const got = await request({ ...routes.getMe, method: 'DELETE' } as Route, {}, authorization);
    const expected_answer = caller === null ? problem(refused) : [405, 'method not allowed'];
    expect([name, got]).toEqual([name, expected_answer]);
  }
});
