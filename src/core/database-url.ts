/** The address of a PostgreSQL database, `postgres://user:password@host:port/database`. */

export interface DatabaseAddress {
  /** A name, an IP address without brackets, or the absolute path of the folder with the server's socket. */
  host: string;
  port: number;
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
  // For a socket, the host may be missing even if there is a user.
  const complete = text.replace(/^([^/]*\/\/(?:[^/?@]*@)?)(?=\/)/, '$1localhost');
  const url = URL.canParse(complete) ? new URL(complete) : null;
  if (url === null || url.hostname.includes(',')) {
    return `${FORM}, with one host; ${ENCODING}`;
  }
  const parameters = findParameters(url);
  if (typeof parameters === 'string') return parameters;
  const [user, password, database] = [url.username, url.password, url.pathname.slice(1)].map(decode);
  if (user === null || password === null || database === null) return `${FORM}; write % as %25`;
  if (/[/@]/.test(url.pathname.slice(1))) return `${FORM}; ${ENCODING}`;
  if (!database) return `${FORM}: the name of the database is missing`;
  const host = parameters.host ?? url.hostname.replace(/^\[|\]$/g, '');
  return {
    host: host === '' ? 'localhost' : host,
    port: url.port === '' ? DEFAULT_PORT : Number(url.port),
    user: user || null,
    password: password || null,
    database,
    tls: parameters.tls,
  };
}

function findParameters({
  searchParams,
}: URL): { host: string | null; tls: DatabaseAddress['tls'] } | string {
  const unknown = [...searchParams.keys()].find((name) => name !== 'host' && name !== 'sslmode');
  if (unknown !== undefined) return 'has an unknown parameter: only host and sslmode are supported';
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
export function describeDatabase({ host, port, database }: DatabaseAddress): string {
  if (host.startsWith('/')) return `${database} in ${host}`;
  return `${database} at ${host.includes(':') ? `[${host}]` : host}:${port}`;
}
