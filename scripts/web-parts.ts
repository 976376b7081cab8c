/** The parts of the built web UI as browsers load them, with the scripts of each and their size limits. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './run.ts';
import { manifestOf, scriptsOf } from './web-manifest.ts';

export interface Part {
  name: string;
  /** The total size of its scripts. */
  paths: string[];
  /** The intended maximum, compressed. */
  budget_kb: number;
  /** The limit that `npm run check` enforces: slightly above the current size, so that growth is noticed. */
  limit_kb: number;
}

const web = join(root, 'dist/web');
const SIGN_IN = ['index.html', 'screens/entry/login.tsx'];
const AGENTS = ['index.html', 'shell/shell.tsx', 'screens/agents/agents.tsx'];
/** What every page loads after its first paint. */
const LATER = ['shell/palette-dialog.tsx', 'ui/toast-list.tsx'];
const AGENT = 'screens/agent/agent.tsx';
/** What is loaded in addition to Agents and `LATER`. */
const more: (Omit<Part, 'paths'> & { sources: string[]; worker?: string })[] = [
  {
    name: '+ conversation',
    sources: [AGENT, 'screens/agent/conversation/tab.tsx'],
    budget_kb: 120,
    limit_kb: 116,
  },
  {
    name: '+ diff',
    sources: [AGENT, 'screens/agent/changes/changes.tsx'],
    worker: 'highlighting',
    budget_kb: 120,
    limit_kb: 95,
  },
  { name: '+ graph', sources: ['graph/steps-graph.tsx'], budget_kb: 95, limit_kb: 90 },
];

/** The parts of the current `dist/web`. */
export function partsOfTheWeb(): Part[] {
  const manifest = manifestOf(web);
  const scripts = (sources: readonly string[]) => scriptsOf(manifest, sources).map((name) => join(web, name));
  const agents = [...scripts(AGENTS), ...filesOf('worker')];
  const later = scripts(LATER).filter((path) => !agents.includes(path));
  return [
    { name: 'first script', paths: scripts(['index.html']), budget_kb: 125, limit_kb: 125 },
    { name: 'sign-in', paths: scripts(SIGN_IN), budget_kb: 130, limit_kb: 128 },
    { name: 'Agents', paths: agents, budget_kb: 230, limit_kb: 185 },
    { name: '+ dialogs', paths: later, budget_kb: 110, limit_kb: 105 },
    ...more.map(({ sources, worker, ...part }) => ({
      ...part,
      paths: [
        ...scripts(sources).filter((path) => !agents.includes(path) && !later.includes(path)),
        ...(worker === undefined ? [] : filesOf(worker)),
      ],
    })),
  ];
}

/** A script that runs next to the page; the manifest does not list it. */
function filesOf(worker: string): string[] {
  const assets = join(web, 'assets');
  return readdirSync(assets)
    .filter((name) => name.startsWith(`${worker}-`) && name.endsWith('.js'))
    .map((name) => join(assets, name));
}
