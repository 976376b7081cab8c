/** The text that the plane prints for a person who starts it in a terminal (pure). */
import { stripVTControlCharacters, styleText } from 'node:util';

export interface BannerFacts {
  version: string;
  url: string;
  data_dir: string;
  home: string;
  /** Set only while there is no root user. */
  join: { url: string; pin: string; expires_at: string } | null;
  /** Sessions from an earlier run of the service that are still running. */
  adopted: number;
  warnings: readonly string[];
  /** Null if a browser can be opened here. Otherwise, the banner shows how to connect from another machine. */
  ssh: { user: string; host: string } | null;
  colors: boolean;
}

export interface NodeBannerFacts {
  version: string;
  id: string;
  /** `host:port` of the internal gRPC listener. */
  listen: string;
  data_dir: string;
  home: string;
  adopted: number;
  /** Whether a plane may still join with the configured token. */
  joinable: boolean;
  warnings: readonly string[];
  colors: boolean;
}

/** The URL to open on this machine. It uses a host name, because passkeys do not work with an address. */
export function forBrowsers(url: string): string {
  return url.replace(/^(https?:\/\/)(?:127\.0\.0\.1|\[::1\])(?=[:/]|$)/, '$1localhost');
}

export function banner(facts: BannerFacts): string {
  const { strong, dim } = styles(facts.colors);
  const data = showFolder(facts.data_dir, facts.home);
  const lines = [
    `${strong(`svc ${facts.version}`)}   control plane   ${strong(facts.url)}   ${dim(`data ${data}`)}`,
  ];
  if (facts.join) {
    const { url, pin, expires_at } = facts.join;
    lines.push(
      '',
      `  ${strong('Create the root user')}`,
      `    Open   ${url}`,
      `    PIN    ${strong(`${pin.slice(0, 4)} ${pin.slice(4)}`)}`,
      `    ${dim(`Valid until ${clockTime(expires_at)} · works once · new one: svc join-link`)}`,
      `    ${dim('Or here, in another terminal: svc join')}`,
    );
  }
  if (facts.ssh) {
    const { port: url_port, protocol } = new URL(facts.url);
    const port = url_port || (protocol === 'https:' ? '443' : '80');
    lines.push(
      '',
      `  From your machine   ssh -L ${port}:127.0.0.1:${port} ${facts.ssh.user}@${facts.ssh.host}`,
    );
  }
  lines.push(...tail(facts));
  return `${lines.join('\n')}\n\n`;
}

export function nodeBanner(facts: NodeBannerFacts): string {
  const { strong, dim } = styles(facts.colors);
  const data = showFolder(facts.data_dir, facts.home);
  const lines = [
    `${strong(`svc ${facts.version}`)}   agent node ${strong(facts.id)}   ${strong(facts.listen)}   ${dim(`data ${data}`)}`,
  ];
  if (facts.joinable) {
    lines.push(
      '',
      `  ${strong('Waiting for its control plane')}: register it there, as root`,
      `    svc nodes register ${facts.id} --target https://<this machine>:${facts.listen.split(':').at(-1)}`,
    );
  }
  lines.push(...tail(facts));
  return `${lines.join('\n')}\n\n`;
}

function tail({
  adopted,
  warnings,
  colors,
}: {
  adopted: number;
  warnings: readonly string[];
  colors: boolean;
}): string[] {
  const lines: string[] = [];
  if (adopted > 0)
    lines.push('', `  ${adopted} running ${adopted === 1 ? 'agent continues' : 'agents continue'}`);
  for (const warning of warnings) lines.push('', `  ! ${stripVTControlCharacters(warning)}`);
  lines.push('', `  ${styles(colors).dim('Ctrl-C stops the service; agents keep running')}`);
  return lines;
}

function styles(colors: boolean): { strong(text: string): string; dim(text: string): string } {
  const style = (name: 'bold' | 'dim') => (text: string) =>
    colors ? styleText(name, text, { validateStream: false }) : text;
  return { strong: style('bold'), dim: style('dim') };
}

function showFolder(path: string, home: string): string {
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

function clockTime(rfc3339: string): string {
  const time = new Date(rfc3339);
  return `${String(time.getHours()).padStart(2, '0')}:${String(time.getMinutes()).padStart(2, '0')}`;
}
