/** The address of a PostgreSQL database, `postgres://user:password@host:port,host:port/database`. */

export interface HostPort {
  /** A name, an IP address without brackets, or the absolute path of the folder with the server's socket. */
  host: string;
  port: number;
}

export interface DatabaseAddress {
  /** At least one. The one that accepts writes has the database. */
  hosts: readonly HostPort[];
  /** Null: the user that svc runs as. */
  user: string | null;
  /** Null: the driver looks for it in `PGPASSWORD` and in `~/.pgpass`. */
  password: string | null;
  database: string;
  /** Null: `verified`, except for servers on this machine without a configured CA. */
  tls: 'off' | 'unverified' | 'verified' | null;
}

const FORM = 'must be postgres://<user>:<password>@<host>:<port>/<database>';
const ENCODING = 'write special characters of the password as in URLs, for example / as %2F';
const DEFAULT_PORT = 5432;
const PARAMETERS = ['host', 'sslmode', 'target_session_attrs'];

/** Values of `sslmode`. Those of libpq that fall back to an unencrypted or unverified connection are left out. */
const tlsModes: Record<string, DatabaseAddress['tls']> = {
  disable: 'off',
  'no-verify': 'unverified',
  require: 'verified',
  'verify-ca': 'verified',
  'verify-full': 'verified',
};

/** Returns the address, or what is wrong with the URL, without its values, because a misplaced one may be the password. */
export function parseDatabaseUrl(text: string): DatabaseAddress | string {
  if (!/^postgres(ql)?:\/\//.test(text)) return FORM;
  if (text.includes('#')) return `${FORM}; write # as %23`;
  const urls = splitHosts(text).map(toUrl);
  if (!isComplete(urls)) return `${FORM}, or several <host>:<port> with commas in between; ${ENCODING}`;
  const url = urls[0];
  const parameters = findParameters(url);
  if (typeof parameters === 'string') return parameters;
  if (urls.length > 1 && parameters.host !== null)
    return 'has hosts and a folder with a socket: use one of them';
  const [user, password, database] = [url.username, url.password, url.pathname.slice(1)].map(decode);
  if (user === null || password === null || database === null) return `${FORM}; write % as %25`;
  if (/[/@]/.test(url.pathname.slice(1))) return `${FORM}; ${ENCODING}`;
  if (!database) return `${FORM}: the name of the database is missing`;
  return {
    hosts: urls.map(({ hostname, port }) => ({
      host: parameters.host ?? (hostname.replace(/^\[|\]$/g, '') || 'localhost'),
      port: port === '' ? DEFAULT_PORT : Number(port),
    })),
    user: user || null,
    password: password || null,
    database,
    tls: parameters.tls,
  };
}

/** The same URL with each of its hosts. */
function splitHosts(text: string): string[] {
  const [, before, hosts, after] = /^([^/]*\/\/(?:[^/?]*@)?)([^/?]*)(.*)$/s.exec(text)!;
  return hosts!.split(',').map((host) => before! + host + after!);
}

/** Null if it is not a URL. */
function toUrl(text: string, _: number, all: readonly string[]): URL | null {
  // For a socket, the host may be missing even if there is a user. One of several must not be missing.
  const complete = all.length > 1 ? text : text.replace(/^([^/]*\/\/(?:[^/?@]*@)?)(?=\/)/, '$1localhost');
  const url = URL.canParse(complete) ? new URL(complete) : null;
  return all.length > 1 && url?.hostname === '' ? null : url;
}

function isComplete(urls: readonly (URL | null)[]): urls is [URL, ...URL[]] {
  return urls.every((url) => url !== null);
}

function findParameters({
  searchParams,
}: URL): { host: string | null; tls: DatabaseAddress['tls'] } | string {
  if ([...searchParams.keys()].some((name) => !PARAMETERS.includes(name))) {
    return `has an unknown parameter: only ${PARAMETERS.join(', ')} are supported`;
  }
  const attributes = searchParams.get('target_session_attrs');
  if (attributes !== null && attributes !== 'read-write' && attributes !== 'primary') {
    return 'has an unsupported target_session_attrs: svc always uses the server that is read-write';
  }
  const host = searchParams.get('host');
  if (host !== null && !host.startsWith('/')) {
    return 'has a parameter host that is not the absolute path of a folder with a socket';
  }
  const mode = searchParams.get('sslmode');
  if (mode === null) return { host, tls: null };
  const tls = Object.hasOwn(tlsModes, mode) ? tlsModes[mode] : undefined;
  return tls === undefined
    ? `has an unsupported sslmode: use one of ${Object.keys(tlsModes).join(', ')}`
    : { host, tls };
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** The database for people and logs, without the password. */
export function describeDatabase({ hosts, database }: DatabaseAddress): string {
  const { host } = hosts[0]!;
  if (host.startsWith('/')) return `${database} in ${host}`;
  return `${database} at ${hosts.map(describeHost).join(',')}`;
}

export function describeHost({ host, port }: HostPort): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
