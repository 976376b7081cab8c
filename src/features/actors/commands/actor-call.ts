/**
 * Calls to the plane through the nearest svc process, which an agent's environment or else this machine's
 * configuration names. Only `svc actor` and `svc mcp --actor` load this module. It reads the files at each call, because
 * a restarted service may use another port.
 *
 * Credentials, in this order: a token made from the configured shared secret (never from `auth_secret.txt`), then the
 * token file of an agent. In `mtls`, an operator's certificate directory is enough, and calls need no token. If the
 * plane rejects the first credential, the second is tried, because the secret may belong to another plane.
 */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createClient } from '@connectrpc/connect';
import { z } from 'zod';
import { sleep } from '../../../base/async.ts';
import { systemClock } from '../../../base/clock.ts';
import { FairQueue } from '../../../base/fair-queue.ts';
import { limits as sharedLimits } from '../../../base/limits.ts';
import type { Context, Io } from '../../../cli/context.ts';
import { failed } from '../../../cli/failure.ts';
import { type LocalOptions, localFlags } from '../../../cli/options.ts';
import { type Config, localAddress, parseAddress } from '../../../core/config.ts';
import { Problem, problemKinds, problems } from '../../../core/problem.ts';
import { type Connection, openConnection } from '../../../link/plane/connection.ts';
import { ActorService } from '../../../link/proto/actor_pb.ts';
import { toProblem } from '../../../link/wire.ts';
import type { ActorMethod, ActorParams, ActorResult } from '../contract.ts';
import { limits } from '../limits.ts';

interface Call<M extends ActorMethod> {
  method: M;
  /** The actor that the credential names. */
  actor_id: string | undefined;
  params: ActorParams<M>;
}

/** Where the nearest process listens, and how to verify it. */
interface CallTarget {
  host: string;
  port: number;
  server_name: string;
  /** PEM; null: no TLS. */
  ca: string | null;
}

/** PEM. */
interface OwnCertificate {
  cert: string;
  key: string;
}

type Env = Io['env'];

/** Makes one call. Throws the plane's Problem, or a Failure if no process answers or there is no credential. */
export async function callPlane<M extends ActorMethod>(
  context: Context,
  options: LocalOptions,
  call: Call<M>,
): Promise<ActorResult<M>> {
  const caller = new PlaneCaller(context, options);
  try {
    return await caller.call(call);
  } finally {
    caller.close();
  }
}

/** A connection that calls share. */
interface Shared {
  /** What determines the connection: address, names and certificates. */
  key: string;
  connection: Promise<Connection>;
  /** A call did not reach the service over it, so no other call uses it. */
  failed: boolean;
  /** Calls in progress. */
  calls: number;
  idle?: NodeJS.Timeout;
}

/**
 * Makes calls over connections that it keeps, because opening one costs several times as much as a call. A connection
 * carries as many calls at a time as the service accepts, and is closed after `limits.actor_connection_idle_ms` without
 * a call. The files are read at each call, as for a single call, so a call after a restart of
 * the service opens another connection. Calls that the service would reject because too many are in progress wait.
 */
export class PlaneCaller {
  readonly #context: Context;
  readonly #options: LocalOptions;
  readonly #open = new Set<Shared>();
  readonly #calls = new FairQueue(limits.actor_calls_at_once, problems.tooManyActorCalls);
  readonly #receives = new FairQueue(limits.actor_receives_at_once, problems.tooManyActorCalls);
  readonly #closed = new AbortController();

  constructor(context: Context, options: LocalOptions) {
    this.#context = context;
    this.#options = options;
  }

  /**
   * Waits while too many calls are in progress. Throws the plane's Problem, or a Failure if no process answers or there is no
   * credential.
   */
  async call<M extends ActorMethod>(call: Call<M>): Promise<ActorResult<M>> {
    try {
      // Apart, because calls that wait for mail would keep out the others.
      const turns = call.method === 'receive' ? this.#receives : this.#calls;
      const key = { owner: call.method, resource: call.method };
      return await turns.run(key, () => this.#call(call), this.#closed.signal);
    } catch (error) {
      if (!isListenerUnreachable(error)) throw error;
      // The process that serves this command is unavailable, not an agent's node.
      throw new Problem(error.kind, 'actor_surface_unreachable', error.message);
    }
  }

  /** Closes the connections. Calls in progress fail, and those that wait for their turn are not made. */
  close(): void {
    this.#closed.abort();
    for (const shared of this.#open) this.#drop(shared);
  }

  async #call<M extends ActorMethod>({ method, actor_id, params }: Call<M>): Promise<ActorResult<M>> {
    const { env, signal } = this.#context.io;
    const config = await loadCallConfig(this.#context, this.#options);
    if (!config.agent && !config.values.get('internal_grpc.enabled')) {
      throw failed(problems.internalGrpcUnavailable().message);
    }
    const own = config.agent ? null : await ownCertificate(config.values);
    const credentials = [...listCredentials(config.values, env, actor_id), ...(own ? [NO_TOKEN] : [])];
    if (credentials.length === 0) throw failed('internal_grpc.auth.shared_secret is not configured');
    const call_target = config.agent ? await agentCallTarget(env) : await configCallTarget(config.values);
    const shared = this.#connect(call_target, own);
    shared.calls++;
    clearTimeout(shared.idle);
    try {
      const connection = await shared.connection;
      let refusal: unknown;
      for (const credential of credentials) {
        try {
          const token = await credential();
          const attempt = () => callTarget(connection, method, params, token, signal);
          // Whoever waits for mail knows until when to repeat the call.
          const answer = method === 'receive' ? attempt() : repeatWhileFull(attempt, signal);
          return (await answer) as ActorResult<M>;
        } catch (error) {
          if (!isUnauthorized(error)) throw error;
          refusal = error;
        }
      }
      throw refusal;
    } catch (error) {
      if (isListenerUnreachable(error)) shared.failed = true;
      throw error;
    } finally {
      shared.calls--;
      if (shared.calls === 0) {
        shared.idle = setTimeout(() => this.#drop(shared), limits.actor_connection_idle_ms).unref();
      }
    }
  }

  /** A connection to this target on which the service accepts another call. */
  #connect(call_target: CallTarget, own: OwnCertificate | null): Shared {
    const { host, port, server_name, ca } = call_target;
    const key = JSON.stringify([call_target, own]);
    for (const shared of this.#open) {
      if (shared.key === key && !shared.failed && shared.calls < sharedLimits.actor_streams_max)
        return shared;
    }
    const connection = openConnection({
      ...{ host, port, servername: server_name },
      tls: ca === null ? null : { ca, anchors: true, ...own },
      signal: this.#context.io.signal,
    });
    const shared: Shared = { key, connection, failed: false, calls: 0 };
    this.#open.add(shared);
    const forget = () => this.#open.delete(shared);
    connection.then(({ closed }) => closed.then(forget), forget);
    return shared;
  }

  #drop(shared: Shared): void {
    clearTimeout(shared.idle);
    this.#open.delete(shared);
    shared.connection.then(
      (connection) => connection.close(),
      () => {},
    );
  }
}

/**
 * Repeats a call that was not made because too many were in progress, for at most `limits.actor_full_ms`: those of other processes
 * of the agent, or of other agents.
 */
async function repeatWhileFull<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const until_ms = performance.now() + limits.actor_full_ms;
  const [first_ms, longest_ms] = limits.actor_full_pause_ms;
  for (let pause_ms: number = first_ms; ; pause_ms = Math.min(pause_ms * 2, longest_ms)) {
    try {
      return await attempt();
    } catch (error) {
      const is_full = error instanceof Problem && error.code === problems.tooManyActorCalls().code;
      if (!is_full || performance.now() >= until_ms || signal.aborted) throw error;
      await sleep(pause_ms * (0.5 + Math.random()), signal);
    }
  }
}

async function callTarget(
  { transport }: Connection,
  method: string,
  params: unknown,
  token: string | null,
  signal: AbortSignal,
): Promise<unknown> {
  try {
    const { result } = await createClient(ActorService, transport).call(
      { method, params: JSON.stringify(params) },
      {
        headers: token === null ? {} : { authorization: `Bearer ${token}` },
        timeoutMs: limits.actor_wait_ms,
        signal,
      },
    );
    return JSON.parse(result);
  } catch (error) {
    throw toProblem(error, problemKinds);
  }
}

function isListenerUnreachable(error: unknown): error is Problem {
  return error instanceof Problem && error.code === problems.nodeUnreachable().code;
}

function isUnauthorized(error: unknown): boolean {
  return error instanceof Problem && error.code === problems.actorUnauthorized().code;
}

/**
 * `agent`: the environment names the process to call. A configuration that the agent's user may not read counts as
 * missing.
 */
async function loadCallConfig(
  { io: { env }, local }: Context,
  options: LocalOptions,
): Promise<{ agent: true; values: Config | null } | { agent: false; values: Config }> {
  const load = () => local.loadConfig(localFlags(options));
  const is_given = options.config !== undefined || options.dataDir !== undefined;
  if (is_given || !env.SVC_ACTOR_ENDPOINT) return { agent: false, values: await load() };
  try {
    return { agent: true, values: await load() };
  } catch {
    return { agent: true, values: null };
  }
}

// --- where ------------------------------------------------------------------------------------------------------------

const announced = z.object({ endpoint: z.url({ protocol: /^https?$/ }), server_name: z.string().optional() });

/** The address that the service last wrote next to the token, else the one from the agent's start. */
async function agentCallTarget(env: Env): Promise<CallTarget> {
  const {
    SVC_ACTOR_ENDPOINT: endpoint = '',
    SVC_ACTOR_CA_FILE: ca_file,
    SVC_ACTOR_TOKEN_FILE: token_file,
  } = env;
  const folder = token_file ? dirname(token_file) : null;
  const text = folder && (await readFile(join(folder, 'actor.json'), 'utf8').catch(() => null));
  const parsed = announced.safeParse(text ? parseJson(text) : { endpoint });
  const { data: call_target } = parsed.success ? parsed : announced.safeParse({ endpoint });
  if (!call_target) throw failed('SVC_ACTOR_ENDPOINT is not a URL');
  const url = new URL(call_target.endpoint);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const ca_path = ca_file || (folder && join(folder, 'ca.pem'));
  return {
    host,
    port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)),
    server_name: call_target.server_name ?? host,
    ca: url.protocol === 'https:' ? await readAuthority(ca_path) : null,
  };
}

async function readAuthority(path: string | null): Promise<string> {
  if (path === null) throw failed('SVC_ACTOR_CA_FILE is not set');
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw failed(`SVC_ACTOR_CA_FILE ${path} cannot be read: ${error.code ?? error.message}`);
  });
}

/** The listener in this machine's configuration, verified with the certificates in its `cert_dir`. */
async function configCallTarget(config: Config): Promise<CallTarget> {
  const near = localAddress(parseAddress(config.get('internal_grpc.listen'))!);
  if (config.get('internal_grpc.security.mode') === 'disabled')
    return { ...near, server_name: near.host, ca: null };
  const cert_dir = config.get('internal_grpc.security.cert_dir');
  const read = (file: string) => readCertFile(config, file);
  const cert = await read('cert.pem');
  const ca = (await read('ca.pem')) ?? cert;
  if (ca === null)
    throw failed(`there is no ca.pem to be read in internal_grpc.security.cert_dir ${cert_dir}`);
  if (cert === null) return { ...near, server_name: near.host, ca };
  // The module that reads names from certificates loads slowly, and agents do not need it.
  const { nameToCheck } = await import('../../../link/trust/pki.ts');
  return { ...near, server_name: nameToCheck(cert, near.host), ca };
}

// --- as whom ----------------------------------------------------------------------------------------------------------

type Credential = () => Promise<string | null>;

/** The certificate of the connection is the only credential. */
const NO_TOKEN: Credential = async () => null;

function listCredentials(config: Config | null, env: Env, actor_id: string | undefined): Credential[] {
  const { SVC_SESSION_ID: session_id, SVC_ACTOR_TOKEN_FILE: token_file } = env;
  const shared_secret = config?.get('internal_grpc.auth.shared_secret') ?? null;
  const found: Credential[] = [];
  if (config && shared_secret !== null) {
    const issuer = config.get('internal_grpc.auth.issuer');
    const audience = config.get('internal_grpc.auth.audience');
    const claims = session_id ? { session_id } : {};
    found.push(async () => {
      const { mintToken } = await import('../../../link/trust/tokens.ts');
      const options = { kind: 'actor', claims } as const;
      return mintToken({ shared_secret, issuer, audience }, actor_id ?? '', systemClock, options);
    });
  }
  if (token_file) found.push(() => readToken(token_file));
  return found;
}

/** In `mtls`, the files in `cert_dir` that the operator can read determine who they are; null if there are none. */
async function ownCertificate(config: Config): Promise<OwnCertificate | null> {
  if (config.get('internal_grpc.security.mode') !== 'mtls') return null;
  const [cert, key] = await Promise.all([readCertFile(config, 'cert.pem'), readCertFile(config, 'key.pem')]);
  return cert === null || key === null ? null : { cert, key };
}

function readCertFile(config: Config, file: string): Promise<string | null> {
  return readFile(join(config.get('internal_grpc.security.cert_dir'), file), 'utf8').catch(() => null);
}

/** The token file is deleted with its session. Without the file, there is no permission to call. */
async function readToken(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw problems.actorUnauthorized();
    throw failed(`SVC_ACTOR_TOKEN_FILE ${path} cannot be read: ${error.code ?? error.message}`);
  });
  return text.trim();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
