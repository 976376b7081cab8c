/**
 * The table of configuration keys: type, default, whether it can be changed live, whether it is a secret. The loader
 * (`main/config.ts`), the live settings, `svc config show` and the names of environment variables use it. This module
 * does no I/O.
 */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
import { parseDatabaseUrl } from './database-url.ts';
import { limits as coreLimits } from './limits.ts';

export type ConfigKind = 'text' | 'integer' | 'boolean' | 'list' | 'path' | 'paths';

export interface ConfigKeySpec<T = unknown> {
  kind: ConfigKind;
  /** Checks a value that already has the right type; text from the environment was parsed according to `kind`. */
  schema: z.ZodType<T>;
  /** If `derived` is set, a placeholder: the loader computes the value. */
  default: T;
  derived: string | null;
  live: boolean;
  secret: boolean;
  /** Whether it may be an argument, which other users of the machine can read. */
  argument: boolean;
  description: string;
  /** The allowed values; null: not limited to certain values. */
  choices: readonly string[] | null;
  /** The smallest and the largest allowed integer; null for other kinds. */
  range: readonly [min: number, max: number] | null;
}

interface Flags {
  live?: true;
  secret?: true;
  /** For a secret that need not contain anything secret. */
  argument?: true;
  /** How the loader derives the default, for documentation. */
  derived?: string;
}

type Allowed = Partial<Pick<ConfigKeySpec, 'choices' | 'range'>>;

function key<T>(
  kind: ConfigKind,
  schema: z.ZodType<T>,
  fallback: T,
  description: string,
  flags: Flags,
  { choices = null, range = null }: Allowed = {},
): ConfigKeySpec<T> {
  return {
    kind,
    schema,
    default: fallback,
    derived: flags.derived ?? null,
    live: flags.live ?? false,
    secret: flags.secret ?? false,
    argument: flags.argument ?? !flags.secret,
    description,
    choices,
    range,
  };
}

const textSchema = z
  .string('must be a string')
  .refine((text) => !/[\0-\x1f\x7f]/.test(text), 'must not contain control characters');
const pathSchema = textSchema
  .refine((path) => path.startsWith('/'), 'must be an absolute path')
  .transform(withoutDots);

const text = (fallback: string, description: string, flags: Flags = {}) =>
  key<string>('text', textSchema, fallback, description, flags);
const optionalText = (description: string, flags: Flags = {}) =>
  key<string | null>('text', textSchema.nullable(), null, description, flags);
const integer = (fallback: number, min: number, max: number, description: string, flags: Flags = {}) =>
  key<number>('integer', integerSchema(min, max), fallback, description, flags, { range: [min, max] });
const optionalInteger = (min: number, max: number, description: string, flags: Flags = {}) =>
  key<number | null>('integer', integerSchema(min, max).nullable(), null, description, flags, {
    range: [min, max],
  });
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
function optionalAddress(description: string) {
  const schema = textSchema.refine((value) => parseAddress(value) !== null, 'must be <host>:<port>');
  return key<string | null>('text', schema.nullable(), null, description, {});
}
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
    { choices: values },
  );
}
function integerSchema(min: number, max: number) {
  const message = `must be an integer from ${min} to ${max}`;
  return z.int(message).min(min, message).max(max, message);
}

function isOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

function isContact(text: string): boolean {
  return /^(mailto:[^\s@]+@[^\s@]+|https:\/\/\S+)$/.test(text) && URL.canParse(text);
}

const YEAR_S = 365 * 24 * 60 * 60;

export const configKeys = {
  data_dir: path('Data directory; other users cannot read it', { derived: '$XDG_DATA_HOME/svc' }),

  'database.url': key<string | null>(
    'text',
    textSchema
      .superRefine((url, context) => {
        const found = parseDatabaseUrl(url);
        if (typeof found === 'string') context.addIssue({ code: 'custom', message: found });
      })
      .nullable(),
    null,
    'PostgreSQL database, postgres://user:password@host:port/database; if unset, the embedded database in data_dir',
    { secret: true, argument: true },
  ),
  'database.ca': optionalPath("Certificates (PEM) that PostgreSQL's certificate is verified with"),
  'database.synchronous': boolean(
    false,
    'PostgreSQL replicates commits synchronously, so that a failover loses none',
  ),
  'database.pool': integer(16, 2, 500, 'Connections to PostgreSQL for reads and writes'),

  'cluster.listen': optionalAddress(
    'Listener for the other control planes of the same database; if set, this one waits while another is active',
  ),
  'cluster.advertise': optionalAddress(
    'Address at which the other control planes reach cluster.listen; if unset, cluster.listen itself',
  ),
  'cluster.name': optionalText('Name of this control plane for people; if unset, the host name'),

  'server.listen': address('127.0.0.1:8080', 'Public HTTP listener'),
  'server.role': choice(['plane', 'node'], 'plane', 'plane, or node for a remote node'),
  'server.local_node': boolean(
    true,
    'Whether agents can run on the machine of the control plane; false: on registered nodes only',
  ),
  'server.node_id': optionalText('Id of this node, as registered on the control plane'),
  'server.tls.cert': optionalPath(
    'Certificate chain (PEM) of the public listener; read again when the file changes',
  ),
  'server.tls.key': optionalPath(
    'Private key (PEM) of the public listener; read again when the file changes',
  ),
  'server.behind_proxy': boolean(
    false,
    'A reverse proxy in front terminates TLS; trust its X-Forwarded-* headers',
  ),

  'internal_grpc.enabled': boolean(
    false,
    'Serve the internal gRPC API, which actors use, and through which the plane reaches a remote node',
  ),
  'internal_grpc.listen': address('127.0.0.1:8081', 'Internal gRPC listener'),
  'internal_grpc.allow_disabled': boolean(false, 'Allow internal_grpc.security.mode = "disabled"'),
  'internal_grpc.security.mode': choice(
    ['tls', 'mtls', 'disabled'],
    'tls',
    'tls: servers have certificates; mtls: clients too; disabled: no TLS (discouraged)',
  ),
  'internal_grpc.security.cert_dir': path('Directory with TLS certificates and keys', {
    derived: '{data_dir}/internal-grpc',
  }),
  'internal_grpc.auth.shared_secret': optionalText(
    'Shared secret; the same on the control plane and every node',
    {
      secret: true,
    },
  ),
  'internal_grpc.auth.issuer': text('svc', 'Token issuer; the same on the control plane and every node'),
  'internal_grpc.auth.audience': text(
    'svc-internal',
    'Token audience; the same on the control plane and every node',
  ),
  'internal_grpc.bootstrap.token': optionalText('Token with which a remote node joins', { secret: true }),

  'worktree.default_root': optionalPath(
    'Folder for worktrees that svc creates; if unset, the main node uses {data_dir}/worktrees',
    { live: true },
  ),
  'worktree.repo_roots': paths('Folders that `worktree_repo` may be in, in addition to safe_paths', {
    live: true,
    derived: 'the git repository that the service was started in',
  }),
  safe_paths: paths('Folders that workdirs may be in, in addition to {data_dir}/worktrees', { live: true }),

  'web.rp_id': optionalText('Relying party ID for passkeys (a domain)'),
  'web.rp_origin': key<string | null>(
    'text',
    textSchema.refine(isOrigin, 'must be an origin, for example https://svc.example.org').nullable(),
    null,
    'Public origin that browsers use; requests with its host are accepted',
    {},
  ),
  'web.rp_name': text('svc', 'Relying party name for passkeys'),

  'auth.min_password_length': integer(12, 1, 1024, 'Minimum length of a password', { live: true }),
  'auth.require_special_chars': boolean(false, 'Passwords must contain a special character', { live: true }),

  'agents.env_allow': list(
    "Variables of the service's environment that agents get; if unset, all except those that are only for the service, such as SVC_*",
  ),
  'agents.run_as': optionalText('Local user that agents run as; the service must run as root'),
  'agents.sandbox': choice(
    ['none', 'bwrap'],
    'none',
    'Sandbox for agents: `bwrap` (bubblewrap, Linux only) or `none`',
  ),
  'agents.sandbox_write': paths(
    'Folders that sandboxed agents may write to, in addition to their own and safe_paths',
  ),
  'agents.sandbox_read': paths(
    'Paths in home directories that sandboxed agents may read; the rest appears empty',
  ),

  'agents.acp_version': integer(
    1,
    1,
    2,
    'Newest ACP version offered to agents; 2 is a preview, and agents without it use 1',
    { live: true },
  ),

  'reviews.leader_timeout_seconds': integer(
    60,
    1,
    YEAR_S,
    'Seconds until a permission review that a leader has not answered goes to people',
    {
      live: true,
    },
  ),
  'reviews.timeout_seconds': optionalInteger(
    1,
    YEAR_S,
    'Seconds until an unanswered permission review or elicitation expires; unset: never',
    {
      live: true,
    },
  ),

  'retention.days': integer(limits.retention_days, 1, 36_500, 'Days for which events are kept', {
    live: true,
  }),
  'retention.run_agents_days': integer(
    limits.retention_days,
    1,
    36_500,
    'Days after the end of a run for which its agents are kept; archived agents, and worktrees with unsaved work, are kept longer',
    { live: true },
  ),
  'retention.bytes_per_agent': integer(
    limits.retention_bytes_per_agent,
    1024 * 1024,
    Number.MAX_SAFE_INTEGER,
    'Maximum bytes of events kept per agent',
    { live: true },
  ),
  'retention.bytes_total': optionalInteger(
    1024 * 1024,
    Number.MAX_SAFE_INTEGER,
    'Maximum bytes of events kept in total; above it, the owner whose logs use the most loses the oldest events. Unset: 20 GiB, or 20 % of the disk of an SQLite database if that is less',
    { live: true },
  ),

  'limits.body_bytes_max': integer(
    limits.body_bytes_max,
    1024,
    1024 ** 3,
    'Maximum size of a request body, in bytes',
    {
      live: true,
    },
  ),
  'limits.streams_per_user': integer(
    limits.streams_per_user,
    1,
    100_000,
    'Maximum number of open event streams per user',
    {
      live: true,
    },
  ),
  'limits.streams_total': integer(
    limits.streams_total,
    1,
    1_000_000,
    'Maximum number of open event streams in total',
    {
      live: true,
    },
  ),
  'limits.requests_per_second': integer(
    limits.requests_per_second,
    1,
    1_000_000,
    `Maximum requests per second, per token, or per address without a valid one; for all tokens of a user together, ${coreLimits.requests_user_factor} times as many`,
    { live: true },
  ),
  'limits.requests_burst': integer(
    limits.requests_burst,
    1,
    1_000_000,
    `Maximum requests in a burst, per token, or per address without a valid one; for all tokens of a user together, ${coreLimits.requests_user_factor} times as many`,
    {
      live: true,
    },
  ),
  'limits.page_items_default': integer(
    limits.page_items_default,
    1,
    limits.page_items_max,
    'Items per page if a request has a cursor but no limit',
    { live: true },
  ),

  'events.redact_env': boolean(true, "Redact the values of an agent's own variables in its events", {
    live: true,
  }),

  'push.subject': key<string | null>(
    'text',
    textSchema.refine(isContact, 'must be a mailto: or https: address').nullable(),
    null,
    'Contact for push services (mailto: or https:)',
    {},
  ),
  'push.origins': key<string[]>(
    'list',
    z.array(textSchema.refine(isOrigin, 'must be an origin'), 'must be a list of origins'),
    [],
    'Your own push services; only these may use private addresses, or http on loopback',
    {},
  ),

  'metrics.open': boolean(false, 'Serve /metrics without a token, to everyone who can reach the listener', {
    live: true,
  }),

  'logging.level': choice(['debug', 'info'], 'info', 'Log level'),
  'logging.format': choice(['json', 'text'], 'json', 'Log format', {
    derived: 'text on a terminal, else json',
  }),
  'logging.output': optionalPath('Log file, reopened on SIGHUP; if unset, standard error'),
} as const;

export type ConfigKey = keyof typeof configKeys;
export type ConfigValues = {
  [K in ConfigKey]: (typeof configKeys)[K] extends ConfigKeySpec<infer T> ? T : never;
};
export const configKeyNames = Object.keys(configKeys) as ConfigKey[];

export function isConfigKey(name: string): name is ConfigKey {
  return Object.hasOwn(configKeys, name);
}

/** Where a value comes from, highest precedence first. */
export const configOrigins = ['flag', 'env', 'live', 'file', 'default'] as const;
export type ConfigOrigin = (typeof configOrigins)[number];

/** The current value of a key, its origin, and the exact source (`SVC_…`, `path:line`, `--flag`). */
export interface ConfigEntry<T = unknown> {
  value: T;
  origin: ConfigOrigin;
  source: string | null;
}

/** The configuration of a process at startup: everything except live changes. */
export interface Config {
  get<K extends ConfigKey>(key: K): ConfigValues[K];
  entry<K extends ConfigKey>(key: K): ConfigEntry<ConfigValues[K]>;
  /** Path of the configuration file that was read, or null. */
  readonly file: string | null;
  /** Warnings about values that are legal but probably unintended; one line each. */
  readonly warnings: readonly string[];
}

/** The current configuration, including live changes. */
export interface Settings {
  get<K extends ConfigKey>(key: K): ConfigValues[K];
  origin(key: ConfigKey): ConfigOrigin;
  /** Calls `fn` after a live change of `key` is committed. Returns a function that unsubscribes. */
  onChange<K extends ConfigKey>(key: K, fn: (value: ConfigValues[K]) => void): () => void;
}

/** The environment variable for a key: `server.listen` → `SVC_SERVER_LISTEN`. */
export function envName(key: ConfigKey): string {
  return `SVC_${key.toUpperCase().replaceAll('.', '_')}`;
}

/** Returns the checked value, or an error `<key> <what is wrong>`. Null means "unset" for keys that allow it. */
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

/**
 * Reads the value of a list from text: a JSON array, or values separated by commas or lines. Text in brackets that is not a
 * JSON array stays text, which `checkValue` rejects.
 */
export function listFromText(text: string): unknown {
  const trimmed = text.trim();
  if (!trimmed.startsWith('[') || !trimmed.endsWith(']')) {
    return trimmed
      .split(/[,\n]/)
      .map((part) => part.trim())
      .filter((part) => part !== '');
  }
  try {
    return JSON.parse(trimmed);
  } catch {
    return text;
  }
}

/** Normalizes an absolute path: removes `.`, `..` and redundant slashes, so that paths can be compared. Keeps symlinks. */
function withoutDots(path: string): string {
  const segments: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '..') segments.pop();
    else if (segment !== '' && segment !== '.') segments.push(segment);
  }
  return `/${segments.join('/')}`;
}

/** Masks a secret value for display. Null stays null, so that "not set" is visible. */
export function maskValue(key: ConfigKey, value: unknown): unknown {
  return configKeys[key].secret && value !== null ? '********' : value;
}

/** Parses `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`; the host has no brackets. Null if it is not an address. */
export function parseAddress(address: string): { host: string; port: number } | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]/]+)):(\d{1,5})$/.exec(address);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host && port <= 65_535 ? { host, port } : null;
}

/** The address at which processes on this machine reach a listener: loopback for a wildcard address. */
export function localAddress({ host, port }: { host: string; port: number }): { host: string; port: number } {
  const loopback = { '0.0.0.0': '127.0.0.1', '::': '::1' } as Record<string, string>;
  return { host: loopback[host] ?? host, port };
}

/** Whether only this machine can reach a listener on `host`. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
