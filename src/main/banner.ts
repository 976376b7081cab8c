/** What the plane tells the person who started it on a terminal. Pure: facts in, lines out. */
import { stripVTControlCharacters, styleText } from 'node:util';

export interface BannerFacts {
  version: string;
  url: string;
  data_dir: string;
  home: string;
  /** Present while there is no root user. */
  join: { url: string; pin: string; expires_at: string } | null;
  /** Sessions of before that go on. */
  adopted: number;
  warnings: readonly string[];
  /** A browser can be opened here; otherwise the way from another machine is told. */
  ssh: { user: string; host: string } | null;
  colours: boolean;
}

export function banner(facts: BannerFacts): string {
  const strong = (text: string) =>
    facts.colours ? styleText('bold', text, { validateStream: false }) : text;
  const dim = (text: string) => (facts.colours ? styleText('dim', text, { validateStream: false }) : text);
  const data = facts.data_dir.startsWith(`${facts.home}/`)
    ? `~${facts.data_dir.slice(facts.home.length)}`
    : facts.data_dir;
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
    const { port: given, protocol } = new URL(facts.url);
    const port = given || (protocol === 'https:' ? '443' : '80');
    lines.push(
      '',
      `  From your machine   ssh -L ${port}:127.0.0.1:${port} ${facts.ssh.user}@${facts.ssh.host}`,
    );
  }
  if (facts.adopted > 0) {
    lines.push('', `  ${facts.adopted} running ${facts.adopted === 1 ? 'agent goes' : 'agents go'} on`);
  }
  for (const warning of facts.warnings) lines.push('', `  ! ${stripVTControlCharacters(warning)}`);
  lines.push('', `  ${dim('Ctrl-C stops the service; agents go on')}`);
  return `${lines.join('\n')}\n\n`;
}

function clockTime(rfc3339: string): string {
  const time = new Date(rfc3339);
  return `${String(time.getHours()).padStart(2, '0')}:${String(time.getMinutes()).padStart(2, '0')}`;
}
