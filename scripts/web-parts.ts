/** The parts of the built web UI as people load them, with the scripts of each, and how large one may be. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './run.ts';
import { manifestOf, scriptsOf } from './web-manifest.ts';

export interface Part {
  name: string;
  /** Of its scripts. */
  paths: string[];
  /** What it should be at most, compressed. */
  budget_kb: number;
  /** What `npm run check` holds it below: a little above what it is, so that it does not grow unnoticed. */
  limit_kb: number;
}

const web = join(root, 'dist/web');
const SIGN_IN = ['index.html', 'screens/entry/login.tsx'];
const AGENTS = ['index.html', 'shell/shell.tsx', 'screens/agents/agents.tsx'];
const AGENT = 'screens/agent/agent.tsx';
/** What comes on top of Agents. */
const more: (Omit<Part, 'paths'> & { sources: string[]; worker?: string })[] = [
  {
    name: '+ conversation',
    sources: [AGENT, 'screens/agent/conversation/tab.tsx'],
    budget_kb: 100,
    limit_kb: 95,
  },
  {
    name: '+ diff',
    sources: [AGENT, 'screens/agent/changes/changes.tsx'],
    worker: 'naming',
    budget_kb: 100,
    limit_kb: 99,
  },
  { name: '+ graph', sources: ['graph/steps-graph.tsx'], budget_kb: 85, limit_kb: 82 },
];

/** Of `dist/web` as it is. */
export function partsOfTheWeb(): Part[] {
  const manifest = manifestOf(web);
  const scripts = (sources: readonly string[]) => scriptsOf(manifest, sources).map((name) => join(web, name));
  const agents = [...scripts(AGENTS), ...filesOf('worker')];
  return [
    { name: 'first script', paths: scripts(['index.html']), budget_kb: 120, limit_kb: 118 },
    { name: 'sign-in', paths: scripts(SIGN_IN), budget_kb: 120, limit_kb: 120 },
    { name: 'Agents', paths: agents, budget_kb: 230, limit_kb: 218 },
    ...more.map(({ sources, worker, ...part }) => ({
      ...part,
      paths: [
        ...scripts(sources).filter((path) => !agents.includes(path)),
        ...(worker === undefined ? [] : filesOf(worker)),
      ],
    })),
  ];
}

/** A script that runs beside the page; the manifest names none of them. */
function filesOf(worker: string): string[] {
  const assets = join(web, 'assets');
  return readdirSync(assets)
    .filter((name) => name.startsWith(`${worker}-`) && name.endsWith('.js'))
    .map((name) => join(assets, name));
}
