/**
 * Every configuration key, once: type, default, whether it can be changed live, whether it is a secret. From this table
 * come the loader (`main/config.ts`), the live settings, `svc config show` and the names of the environment variables.
 * It reads nothing itself.
 */
import { z } from 'zod';
import { limits } from '../base/limits.ts';

export type ConfigKind = 'text' | 'integer' | 'boolean' | 'list' | 'path' | 'paths';

export interface ConfigKeySpec<T = unknown> {
  kind: ConfigKind;
  /** Checks a value that already has the right form (after text from the environment was read by `kind`). */
  schema: z.ZodType<T>;
  /** Where `derived` is set, the loader works it out and this is only a stand-in. */
  default: T;
  derived: string | null;
  live: boolean;
  secret: boolean;
  description: string;
}

interface Flags {
  live?: true;
  secret?: true;
  /** How the loader derives the default, in words. */
  derived?: string;
}

function key<T>(
  kind: ConfigKind,
  schema: z.ZodType<T>,
  fallback: T,
  description: string,
  flags: Flags,
): ConfigKeySpec<T> {
  return {
    kind,
    schema,
    default: fallback,
    derived: flags.derived ?? null,
    live: flags.live ?? false,
    secret: flags.secret ?? false,
    description,
  };
}

const textSchema = z
  .string('must be a string')
  .refine((text) => !/[\0-\x1f\x7f]/.test(text), 'must not contain control characters');
const pathSchema = textSchema.refine((path) => path.startsWith('/'), 'must be an absolute path');

const text = (fallback: string, description: string, flags: Flags = {}) =>
  key<string>('text', textSchema, fallback, description, flags);
const optionalText = (description: string, flags: Flags = {}) =>
  key<string | null>('text', textSchema.nullable(), null, description, flags);
const integer = (fallback: number, min: number, max: number, description: string, flags: Flags = {}) =>
  key<number>('integer', integerSchema(min, max), fallback, description, flags);
const optionalInteger = (min: number, max: number, description: string, flags: Flags = {}) =>
  key<number | null>('integer', integerSchema(min, max).nullable(), null, description, flags);
const boolean = (fallback: boolean, description: string, flags: Flags = {}) =>
  key<boolean>('boolean', z.boolean('must be true or false'), fallback, description, flags);
const list = (description: string, flags: Flags = {}) =>
  key<string[]>('list', z.array(textSchema, 'must be a list of strings'), [], description, flags);
const path = (description: string, flags: Flags & { derived: string }) =>
  key<string>('path', pathSchema, '', description, flags);
const optionalPath = (description: string, flags: Flags = {}) =>
  key<string | null>('path', pathSchema.nullable(), null, description, flags);
const paths = (description: string, flags: Flags = {}) =>
  key<string[]>('paths', z.array(pathSchema, 'must be a list of paths'), [], description, flags);
const address = (fallback: string, description: string) =>
  key<string>(
    'text',
    textSchema.refine((value) => parseAddress(value) !== null, 'must be <host>:<port>'),
    fallback,
    description,
    {},
  );
function choice<const Values extends readonly [string, ...string[]]>(
  values: Values,
  fallback: Values[number],
  description: string,
  flags: Flags = {},
) {
  return key<Values[number]>(
    'text',
    z.enum(values, `must be ${values.map((value) => `"${value}"`).join(' or ')}`),
    fallback,
    description,
    flags,
  );
}
function integerSchema(min: number, max: number) {
  const wrong = `must be an integer from ${min} to ${max}`;
  return z.int(wrong).min(min, wrong).max(max, wrong);
}

function isOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

function isContact(text: string): boolean {
  return /^(mailto:[^\s@]+@[^\s@]+|https:\/\/\S+)$/.test(text) && URL.canParse(text);
}

const YEAR_S = 365 * 24 * 60 * 60;

export const configKeys = {
  data_dir: path('Where everything is kept; closed to other users', { derived: '$XDG_DATA_HOME/svc' }),

  'server.listen': address('127.0.0.1:8080', 'Public HTTP listener'),
  'server.role': choice(['plane', 'node'], 'plane', '"node" makes the process a remote Agent Node'),
  'server.node_id': optionalText('Id of this node, as registered on the control plane'),
  'server.tls.cert': optionalPath('Certificate chain (PEM) of the public listener'),
  'server.tls.key': optionalPath('Private key (PEM) of the public listener'),
  'server.behind_proxy': boolean(false, 'A reverse proxy does TLS in front; X-Forwarded-* is believed'),

  'internal_grpc.enabled': boolean(false, 'Serve the internal gRPC control surface'),
  'internal_grpc.listen': address('127.0.0.1:8081', 'Internal gRPC listener'),
  'internal_grpc.allow_disabled': boolean(false, 'Accept security.mode "disabled"'),
  'internal_grpc.security.mode': choice(
    ['tls', 'mtls', 'disabled'],
    'tls',
    'Server authentication, mutual authentication, or (discouraged) none',
  ),
  'internal_grpc.security.cert_dir': path('Directory of TLS material', {
    derived: '{data_dir}/internal-grpc',
  }),
  'internal_grpc.auth.shared_secret': optionalText('Identical on the control plane and every node', {
    secret: true,
  }),
  'internal_grpc.auth.issuer': text('svc', 'Token issuer; must match across nodes'),
  'internal_grpc.auth.audience': text('svc-internal', 'Token audience; must match across nodes'),
  'internal_grpc.bootstrap.token': optionalText('Join handshake token for remote nodes', { secret: true }),

  'worktree.default_root': optionalPath(
    'Base of derived workdirs; the Main Node falls back to {data_dir}/worktrees',
    { live: true },
  ),
  'worktree.repo_roots': paths('Where worktree_repo may lie, beside safe_paths', {
    live: true,
    derived: 'the git repository that the service was started in',
  }),
  safe_paths: paths('Where workdirs may lie; {data_dir}/worktrees always is one', { live: true }),

  'web.rp_id': optionalText('Passkey relying-party id (a domain)'),
  'web.rp_origin': key<string | null>(
    'text',
    textSchema.refine(isOrigin, 'must be an origin, for example https://svc.example.org').nullable(),
    null,
    'Origin that browsers use; its host is accepted',
    {},
  ),
  'web.rp_name': text('svc', 'Passkey relying-party name'),

  'auth.min_password_length': integer(12, 1, 1024, 'Fewest characters of a password', { live: true }),
  'auth.require_special_chars': boolean(false, 'A password needs a special character', { live: true }),

  'agents.env_allow': list(
    "Variables of the service's environment that agents get; none named: all but SVC_*",
  ),
  'agents.run_as': optionalText('Local user that agents run as (needs root)'),
  'agents.sandbox': choice(['none', 'bwrap'], 'none', 'Sandbox around agents: bubblewrap (Linux), or none'),
  'agents.sandbox_write': paths('Where agents in a sandbox may write beside their folders and safe_paths'),
  'agents.sandbox_read': paths(
    'What agents in a sandbox may read of home directories, which they find empty',
  ),

  'reviews.leader_timeout_seconds': integer(60, 1, YEAR_S, 'A review at a leader goes on to humans after', {
    live: true,
  }),
  'reviews.timeout_seconds': optionalInteger(1, YEAR_S, 'An unanswered review expires after', { live: true }),

  'retention.days': integer(limits.retention_days, 1, 36_500, 'Events are kept for', { live: true }),
  'retention.bytes_per_agent': integer(
    limits.retention_bytes_per_agent,
    1024 * 1024,
    Number.MAX_SAFE_INTEGER,
    'Bytes of events kept per agent',
    { live: true },
  ),
  'retention.bytes_total': optionalInteger(
    1024 * 1024,
    Number.MAX_SAFE_INTEGER,
    'Bytes of events kept in all; unset: the smaller of 20 GiB and 20 % of the disk',
    { live: true },
  ),

  'limits.body_bytes_max': integer(limits.body_bytes_max, 1024, 1024 ** 3, 'Largest request body', {
    live: true,
  }),
  'limits.streams_per_user': integer(limits.streams_per_user, 1, 100_000, 'Open event streams per user', {
    live: true,
  }),
  'limits.streams_total': integer(limits.streams_total, 1, 1_000_000, 'Open event streams in all', {
    live: true,
  }),
  'limits.requests_per_second': integer(
    limits.requests_per_second,
    1,
    1_000_000,
    'Requests per second and token',
    { live: true },
  ),
  'limits.requests_burst': integer(limits.requests_burst, 1, 1_000_000, 'Requests in a burst per token', {
    live: true,
  }),
  'limits.page_items_default': integer(
    limits.page_items_default,
    1,
    limits.page_items_max,
    'Items of a page when only a cursor is given',
    { live: true },
  ),

  'events.redact_env': boolean(true, "Values of an agent's own variables are taken out of its events", {
    live: true,
  }),

  'push.subject': key<string | null>(
    'text',
    textSchema.refine(isContact, 'must be a mailto: or https: address').nullable(),
    null,
    'Contact (mailto: or https:) that push services get',
    {},
  ),
  'push.origins': key<string[]>(
    'list',
    z.array(textSchema.refine(isOrigin, 'must be an origin'), 'must be a list of origins'),
    [],
    'Push services of your own: the only ones at private addresses, and by http on loopback',
    {},
  ),

  'metrics.open': boolean(false, '/metrics answers without a token, to everybody who reaches the listener', {
    live: true,
  }),

  'logging.level': choice(['debug', 'info'], 'info', 'How much the log tells'),
  'logging.format': choice(['json', 'text'], 'json', 'Form of the log', {
    derived: 'text on a terminal, else json',
  }),
  'logging.output': optionalPath('Log file, reopened on SIGHUP; unset: standard error'),
} as const;

export type ConfigKey = keyof typeof configKeys;
export type ConfigValues = {
  [K in ConfigKey]: (typeof configKeys)[K] extends ConfigKeySpec<infer T> ? T : never;
};
export const configKeyNames = Object.keys(configKeys) as ConfigKey[];

export function isConfigKey(name: string): name is ConfigKey {
  return Object.hasOwn(configKeys, name);
}

/** `flag` over `env` over `live` over `file` over `default`. */
export const configOrigins = ['flag', 'env', 'live', 'file', 'default'] as const;
export type ConfigOrigin = (typeof configOrigins)[number];

/** One key as it stands: the value, who set it, and where exactly (`SVC_…`, `path:line`, `--flag`). */
export interface ConfigEntry<T = unknown> {
  value: T;
  origin: ConfigOrigin;
  source: string | null;
}

/** The configuration of a process at its start: everything but the live layer. */
export interface Config {
  get<K extends ConfigKey>(key: K): ConfigValues[K];
  entry<K extends ConfigKey>(key: K): ConfigEntry<ConfigValues[K]>;
  /** The file that was read, or null. */
  readonly file: string | null;
  /** Things that are legal but probably not meant; one line each. */
  readonly warnings: readonly string[];
}

/** The configuration as it is now, live changes included. */
export interface Settings {
  get<K extends ConfigKey>(key: K): ConfigValues[K];
  origin(key: ConfigKey): ConfigOrigin;
  /** Calls `fn` after a live change of `key` is committed; answers how to stop that. */
  onChange<K extends ConfigKey>(key: K, fn: (value: ConfigValues[K]) => void): () => void;
}

/** The environment variable of a key: `server.listen` → `SVC_SERVER_LISTEN`. */
export function envName(key: ConfigKey): string {
  return `SVC_${key.toUpperCase().replaceAll('.', '_')}`;
}

/** What is wrong with a value, as `<key> <what>`, or the checked value. Null stands for "unset" where that is legal. */
export function checkValue<K extends ConfigKey>(
  key: K,
  value: unknown,
): { ok: true; value: ConfigValues[K] } | { ok: false; error: string } {
  const result = configKeys[key].schema.safeParse(value);
  if (result.success) return { ok: true, value: result.data as ConfigValues[K] };
  const issue = result.error.issues[0];
  const at = issue?.path.length ? `${key}[${issue.path.join('.')}]` : key;
  return { ok: false, error: `${at} ${issue?.message ?? 'is invalid'}` };
}

/** What stands for a secret wherever configuration is shown; null stays null, so that "not set" can be seen. */
export function maskValue(key: ConfigKey, value: unknown): unknown {
  return configKeys[key].secret && value !== null ? '********' : value;
}

/** `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` → host (without brackets) and port; null when it is none. */
export function parseAddress(address: string): { host: string; port: number } | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]/]+)):(\d{1,5})$/.exec(address);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host && port <= 65_535 ? { host, port } : null;
}

/** Where processes of the listener's own machine dial it. */
export function nearAddress({ host, port }: { host: string; port: number }): { host: string; port: number } {
  const loopback = { '0.0.0.0': '127.0.0.1', '::': '::1' } as Record<string, string>;
  return { host: loopback[host] ?? host, port };
}

/** True when only this machine can reach a listener on `host`. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
