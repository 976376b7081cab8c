/**
 * Loads the configuration. Flags take precedence over environment variables, those over the file, and that over
 * defaults; `features/settings/service.ts` adds live changes on top. Rejects unknown keys, wrong types and unsafe
 * combinations. Every message names the key and its origin. Reads files; changes nothing.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { closest, distance } from 'fastest-levenshtein';
import { parse, TomlError } from 'smol-toml';
import { absolutePath } from '../base/files.ts';
import { xdgFolder } from '../base/xdg.ts';
import {
  type Config,
  type ConfigEntry,
  type ConfigKey,
  type ConfigValues,
  checkValue,
  configKeyNames,
  configKeys,
  envName,
  isConfigKey,
  isLoopback,
  listFromText,
  parseAddress,
} from '../core/config.ts';
import { parseDatabaseUrl } from '../core/database-url.ts';
import { MAIN_NODE, NODE_ID, NODE_ID_RULE } from '../core/node.ts';
import { invalid } from '../core/problem.ts';

export interface ConfigSources {
  env: Readonly<Record<string, string | undefined>>;
  /** Values of flags as text, with the flag; paths may be relative to `cwd`. */
  flags?: ReadonlyMap<ConfigKey, { text: string; flag: string }>;
  /** The file named by `--config`; it must exist. */
  file?: string | undefined;
  cwd: string;
  home: string;
  /** Whether standard error is a terminal; the log then defaults to text. */
  tty?: boolean;
  /** Path of the system-wide file; tests use another one. */
  system_file?: string;
}

/** Variables that are not configuration keys: client settings, and variables that svc sets for agents. */
const OTHER_VARIABLES =
  /^SVC_(CONFIG|URL|TOKEN|FAILPOINT|NO_COLOR|(AGENT|SESSION|TEAM|RUN|MEMBER|ACTOR|STEP|TEST)(_.*)?)$/;

/** Throws a Problem (`invalid_config`) whose message lists all errors, one per line. */
export function loadConfig(sources: ConfigSources): Config {
  const errors: string[] = [];
  const warnings: string[] = [];
  const entries = new Map<ConfigKey, ConfigEntry>();
  const file = findFile(sources);

  const offer = (
    key: ConfigKey,
    value: unknown,
    origin: 'flag' | 'env' | 'file',
    source: string,
    base: string,
  ) => {
    const checked = checkValue(key, resolveFrom(key, value, base, sources.home));
    if (checked.ok) entries.set(key, { value: checked.value, origin, source });
    else errors.push(`${checked.error} (${source})`);
  };

  if (file !== null) {
    for (const { path, value, line } of readToml(file, errors, warnings)) {
      if (!isConfigKey(path)) errors.push(`${unknownKey(path)} (${file}:${line()})`);
      else if (value !== '') offer(path, value, 'file', `${file}:${line()}`, dirname(file));
    }
  }
  for (const key of configKeyNames) {
    const found = fromEnvironment(sources, key, errors);
    if (found) offer(key, fromText(key, found.text), 'env', found.source, sources.cwd);
    const flag = sources.flags?.get(key);
    if (flag && flag.text !== '') offer(key, fromText(key, flag.text), 'flag', flag.flag, sources.cwd);
  }
  warnings.push(...unknownVariables(sources.env));
  if (errors.length > 0) throw invalid(errors.join('\n'), 'invalid_config');

  const entry = <K extends ConfigKey>(key: K): ConfigEntry<ConfigValues[K]> => {
    const set = entries.get(key) ?? { value: configKeys[key].default, origin: 'default', source: null };
    return set as ConfigEntry<ConfigValues[K]>;
  };
  const derive = <K extends ConfigKey>(key: K, value: ConfigValues[K]) => {
    if (!entries.has(key)) entries.set(key, { value, origin: 'default', source: null });
  };
  derive('data_dir', join(xdgFolder(sources, 'XDG_DATA_HOME', '.local/share'), 'svc'));
  derive('internal_grpc.security.cert_dir', join(entry('data_dir').value, 'internal-grpc'));
  const repo = findRepository(sources.cwd);
  derive('worktree.repo_roots', repo === null ? [] : [repo]);
  warnings.push(...openMetrics(entry), ...passwordInArguments(entry), ...noPlaceForAgents(entry));
  derive('logging.format', sources.tty && entry('logging.output').value === null ? 'text' : 'json');

  return { entry, get: (key) => entry(key).value, file, warnings };
}

/** Warns if metrics without a token are reachable from other machines. */
function openMetrics(entry: Config['entry']): string[] {
  const listen = entry('server.listen').value;
  const is_near = isLoopback(parseAddress(listen)?.host ?? '') && !entry('server.behind_proxy').value;
  if (!entry('metrics.open').value || is_near) return [];
  return [`metrics.open: everyone who can reach ${listen} can read /metrics without a token`];
}

/** Warns about a plane on which no agent can run. */
function noPlaceForAgents(entry: Config['entry']): string[] {
  if (entry('server.local_node').value || entry('internal_grpc.enabled').value) return [];
  return ['server.local_node = false needs internal_grpc.enabled = true: otherwise no agent can run'];
}

/** The URL of a database may be an argument, because it need not contain a password. */
function passwordInArguments(entry: Config['entry']): string[] {
  const { value, origin, source } = entry('database.url');
  const address = value === null ? null : parseDatabaseUrl(value);
  if (origin !== 'flag' || address === null || typeof address === 'string') return [];
  return address.password === null
    ? []
    : [`${source} contains a password, which other users can read: use SVC_DATABASE_URL_FILE instead`];
}

/** The reasons why the process must not start with this configuration; empty if it may. */
export function refusals(config: Config): string[] {
  const role = config.get('server.role');
  const of_role =
    role === 'node' ? nodeRefusals(config) : [...listenerRefusals(config), ...clusterRefusals(config)];
  return [...of_role, ...linkRefusals(config)];
}

function listenerRefusals(config: Config): string[] {
  const listen = config.get('server.listen');
  const host = parseAddress(listen)?.host ?? '';
  const cert = config.get('server.tls.cert');
  const key = config.get('server.tls.key');
  if ((cert === null) !== (key === null)) {
    return [`server.tls.${cert === null ? 'cert' : 'key'} is missing: server.tls needs both cert and key`];
  }
  if (isLoopback(host) || cert !== null || config.get('server.behind_proxy')) return [];
  return [
    `server.listen ${listen} can be reached from other machines and would be unencrypted: set server.tls.cert and ` +
      'server.tls.key, or server.behind_proxy = true when a proxy in front does TLS',
  ];
}

function nodeRefusals(config: Config): string[] {
  const found: string[] = [];
  const id = config.get('server.node_id');
  if (id === null)
    found.push('server.role "node" needs server.node_id, the id registered on the control plane');
  else if (id === MAIN_NODE) found.push('server.node_id "main" is reserved for the control plane’s own node');
  else if (!NODE_ID.test(id)) found.push(`server.node_id ${NODE_ID_RULE}`);
  if (!config.get('server.local_node')) {
    found.push('server.role "node" runs agents: remove server.local_node = false');
  }
  if (!config.get('internal_grpc.enabled')) {
    found.push('server.role "node" needs internal_grpc.enabled = true: a node serves nothing else');
  }
  return found;
}

/** Planes that share a database have neither a data directory nor agents of this machine in common. */
function clusterRefusals(config: Config): string[] {
  const listen = config.get('cluster.listen');
  if (listen === null) return [];
  const found: string[] = [];
  if (config.get('database.url') === null)
    found.push('cluster.listen needs database.url, a PostgreSQL database');
  if (config.get('server.local_node')) {
    found.push('cluster.listen needs server.local_node = false: agents run on remote nodes only');
  }
  if (!config.get('internal_grpc.enabled')) {
    found.push(
      'cluster.listen needs internal_grpc.enabled = true, through which the control planes reach the nodes',
    );
  }
  if (config.get('internal_grpc.security.mode') === 'disabled') {
    found.push('cluster.listen needs internal_grpc.security.mode "tls" or "mtls"');
  }
  const { host } = parseAddress(listen)!;
  if (isUnspecified(host) && config.get('cluster.advertise') === null) {
    found.push(
      `cluster.listen ${listen} listens on all addresses: set cluster.advertise to the one that the others use`,
    );
  }
  return found;
}

function isUnspecified(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

function linkRefusals(config: Config): string[] {
  const found: string[] = [];
  const listen = config.get('internal_grpc.listen');
  if (
    config.get('internal_grpc.enabled') &&
    config.get('internal_grpc.security.mode') === 'disabled' &&
    !config.get('internal_grpc.allow_disabled') &&
    !isLoopback(parseAddress(listen)?.host ?? '')
  ) {
    found.push(
      `internal_grpc.security.mode "disabled" would leave internal_grpc.listen ${listen} unencrypted for other machines: ` +
        'use "tls" or "mtls", or internal_grpc.allow_disabled = true',
    );
  }
  return found;
}

function findFile(sources: ConfigSources): string | null {
  const named = sources.file ?? (sources.env.SVC_CONFIG || undefined);
  if (named !== undefined) {
    const path = resolve(sources.cwd, named);
    if (!existsSync(path)) throw invalid(`config file ${path} does not exist`, 'invalid_config');
    return path;
  }
  const places = [
    join(xdgFolder(sources, 'XDG_CONFIG_HOME', '.config'), 'svc/config.toml'),
    sources.system_file ?? '/etc/svc/config.toml',
  ];
  return places.find((place) => existsSync(place)) ?? null;
}

interface FileKey {
  path: string;
  value: unknown;
  line: () => number;
}

function readToml(file: string, errors: string[], warnings: string[]): FileKey[] {
  let text: string;
  let table: Record<string, unknown>;
  try {
    text = readFileSync(file, 'utf8');
    table = parseToml(text);
  } catch (error) {
    errors.push(
      error instanceof TomlError
        ? `${file}:${error.line}: ${error.message.split('\n')[0]}`
        : `config file ${file} cannot be read: ${(error as Error).message}`,
    );
    return [];
  }
  const found: FileKey[] = [];
  const walk = (node: Record<string, unknown>, above: string[]) => {
    for (const [name, value] of Object.entries(node)) {
      const path = [...above, name];
      const dotted = path.join('.');
      if (isTable(value) && !isConfigKey(dotted)) walk(value, path);
      else found.push({ path: dotted, value, line: () => lineOf(text, path) });
    }
  };
  walk(table, []);
  const holdsSecret = found.some(({ path }) => isConfigKey(path) && configKeys[path].secret);
  if (holdsSecret && (statSync(file).mode & 0o077) !== 0) {
    warnings.push(`${file} holds a secret and other users can read it: chmod 600 ${file}`);
  }
  return found;
}

function parseToml(text: string): Record<string, unknown> {
  return parse(text, { unsafeKeyBehaviour: 'throw', maxDepth: 8 });
}

/**
 * The parser reports no positions, so the line is found by parsing prefixes: the key is on the first line after the longest
 * prefix that parses without it.
 */
function lineOf(text: string, path: readonly string[]): number {
  const lines = text.split('\n');
  let before = 0;
  for (let n = 1; n <= lines.length; n++) {
    let table: unknown;
    try {
      table = parseToml(lines.slice(0, n).join('\n'));
    } catch {
      continue;
    }
    for (const name of path) table = isTable(table) ? table[name] : undefined;
    if (table !== undefined) break;
    before = n;
  }
  return before + 1;
}

function isTable(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

function unknownKey(path: string): string {
  const near = closest(path, configKeyNames);
  const close = distance(path, near) <= Math.max(3, path.length / 3);
  const sameName = configKeyNames.find((key) => key.endsWith(`.${path}`));
  const guess = close ? near : sameName;
  return `unknown key ${path}${guess ? `: did you mean ${guess}?` : `, nearest known key: ${near}`}`;
}

function fromEnvironment(
  { env, cwd }: ConfigSources,
  key: ConfigKey,
  errors: string[],
): { text: string; source: string } | null {
  const name = envName(key);
  const direct = env[name];
  if (direct) return { text: direct, source: name };
  const from = env[`${name}_FILE`];
  if (!from) return null;
  try {
    const text = readFileSync(resolve(cwd, from), 'utf8').replace(/\r?\n$/, '');
    return text === '' ? null : { text, source: `${name}_FILE` };
  } catch (error) {
    errors.push(`${key} cannot be read from ${from}: ${(error as Error).message} (${name}_FILE)`);
    return null;
  }
}

/**
 * Converts the text of a flag or variable to the TOML type of the key. Text that cannot be converted stays text and is
 * rejected later.
 */
function fromText(key: ConfigKey, text: string): unknown {
  switch (configKeys[key].kind) {
    case 'integer':
      return /^-?\d+$/.test(text.trim()) ? Number(text) : text;
    case 'boolean':
      return (
        ({ true: true, false: false, '1': true, '0': false } as const)[text.trim().toLowerCase()] ?? text
      );
    case 'list':
    case 'paths':
      return listFromText(text);
    default:
      return text;
  }
}

/** Paths may be relative to the file that contains them, or to the working directory. */
function resolveFrom(key: ConfigKey, value: unknown, base: string, home: string): unknown {
  const absolute = (path: unknown) =>
    typeof path !== 'string' || path === '' ? path : absolutePath(path, base, home);
  const { kind } = configKeys[key];
  if (kind === 'path') return absolute(value);
  return kind === 'paths' && Array.isArray(value) ? value.map(absolute) : value;
}

function unknownVariables(env: ConfigSources['env']): string[] {
  const known = new Set(configKeyNames.flatMap((key) => [envName(key), `${envName(key)}_FILE`]));
  return Object.keys(env)
    .filter((name) => name.startsWith('SVC_') && !known.has(name) && !OTHER_VARIABLES.test(name))
    .map((name) => {
      const near = closest(name, [...known]);
      return `unknown variable ${name} is ignored${distance(name, near) <= 4 ? `: did you mean ${near}?` : ''}`;
    });
}

function findRepository(from: string): string | null {
  for (let folder = from; ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.git'))) return folder;
    if (folder === dirname(folder)) return null;
  }
}
