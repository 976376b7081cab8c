/** Which module of `src/` may import which. ARCHITECTURE.md explains the modules. */
import { importsOf, isForTests, type SourceFile, targetOf } from './source.ts';

/** A module imports only from modules with a lower number, and from itself. */
const layers: Record<string, number> = {
  base: 0,
  core: 1,
  acp: 2,
  api: 2,
  client: 3,
  store: 4,
  events: 5,
  work: 5,
  node: 6,
  link: 6,
  server: 7,
  features: 8,
  tools: 9,
  cli: 10,
  main: 11,
};

/** The web UI runs in the browser. It reaches everything else over HTTP. */
const web_imports = ['acp', 'api', 'base', 'client', 'core'];

/** A feature imports only from features before it. The others reach it through facts, intents, hooks and extensions. */
export const features = [
  ...[
    'audit',
    'settings',
    'presets',
    'agents',
    'worktrees',
    'nodes',
    'cluster',
    'teams',
    'reviews',
    'elicitations',
    'tokens',
    'streams',
  ],
  ...['conversations', 'accounts', 'passkeys', 'runs', 'actors', 'mailbox', 'notifications', 'tasks'],
];

/** These define what a feature is. Every feature imports them; they import only the two features of the core. */
const feature_files = ['feature.ts', 'feature-set.ts', 'feature-set.test.ts'];
const core_features = ['audit', 'settings'];

/** Pure parts of a feature, as files or folders: every module and every feature may import them. */
export const pure_parts = ['contract', 'rules', 'limits'];
/** Parts that no other feature imports. */
const private_parts = ['http', 'actor', 'commands'];

/** Features that can be removed, with the features that need them. Otherwise only the lists of features import them. */
export const removable: Record<string, readonly string[]> = {
  passkeys: [],
  mailbox: ['tasks'],
  tasks: [],
};
/** Files with one or more entries for every feature. */
const feature_lists = [
  'src/main/plane.ts',
  'src/api/routes.ts',
  'src/cli/main.ts',
  'src/features/actors/contract.ts',
  'src/web/features.ts',
];

/** Forbidden imports that have not been removed yet. Remove a line here when you remove its import. */
export const known_violations: string[] = [];

interface Location {
  module: string;
  feature: string;
  part: string;
}

/** Where a file of `src/` belongs; `part` is the file or folder within its feature. */
export function locate(path: string): Location {
  const [, module = '', feature = '', part = ''] = path.split('/');
  return { module, feature, part: part.replace(/\.tsx?$/, '') };
}

export function isKnownModule(path: string): boolean {
  const { module, feature } = locate(path);
  if (module === 'features') return [...feature_files, ...features].includes(feature);
  return module in layers || module === 'web' || module === 'testing';
}

/** Why one import is not allowed, and what to do instead; null if it is. */
export function violation(path: string, imported: string): string | null {
  const target = targetOf(path, imported);
  if (target === null) return null;
  const found = `${path} imports ${target}`;
  if (!target.startsWith('src/')) return `${found}: nothing in src/ may depend on files outside src/`;
  if (isForTests(target)) return `${found}: move the code that the product needs out of the test code`;
  const from = locate(path);
  const to = locate(target);
  if (to.module === 'features' && pure_parts.includes(to.part)) return null;
  if (from.module === 'web') {
    const allowed = to.module === 'web' || web_imports.includes(to.module);
    return allowed ? null : `${found}: the web UI uses the client, contracts and rules only`;
  }
  if (from.module !== to.module) {
    // Commands use the toolkit of the CLI, which lists them.
    if (to.module === 'cli' && from.part === 'commands') return null;
    const allowed = layers[from.module]! > layers[to.module]!;
    return allowed
      ? null
      : `${found}: ${to.module} is not below ${from.module}; move the code down, or pass it in`;
  }
  if (from.module !== 'features' || from.feature === to.feature) return null;
  if (feature_files.includes(to.feature)) return null;
  if (from.part === 'commands') {
    return to.part === 'commands' ? null : `${found}: commands use the HTTP client, not services`;
  }
  if (private_parts.includes(to.part))
    return `${found}: ${to.part} is private to its feature; use its service`;
  const allowed = feature_files.includes(from.feature)
    ? core_features.includes(to.feature)
    : features.indexOf(from.feature) > features.indexOf(to.feature);
  return allowed
    ? null
    : `${found}: features/${to.feature} comes after features/${from.feature}; record a fact that it reacts to`;
}

/** The removable feature to which a file belongs, on the server or in the web UI; null: to none. */
function removableOf(path: string): string | null {
  const name = /^src\/(?:features|web\/screens)\/([^/]+)\//.exec(path)?.[1];
  return name !== undefined && Object.hasOwn(removable, name) ? name : null;
}

/** Whether the file remains if the feature is removed, and is not a list. */
export function outlives(path: string, feature: string): boolean {
  const own = removableOf(path);
  return (
    own !== feature && !feature_lists.includes(path) && !(own !== null && removable[feature]!.includes(own))
  );
}

/** Why a file may not import a feature that can be removed, and what to do instead; null if it may. */
export function removalViolation(path: string, imported: string): string | null {
  const target = targetOf(path, imported);
  const feature = target === null ? null : removableOf(target);
  if (feature === null || !outlives(path, feature)) return null;
  const instead = path.startsWith('src/web/')
    ? 'add a slot to src/web/feature.ts, and fill it in the feature.ts of its screens'
    : 'move the code into the feature, or add an extension or hook to features/feature.ts that it implements';
  return `${path} imports ${target}: ${feature} must stay removable; ${instead}`;
}

export function violations(files: readonly SourceFile[]): string[] {
  const found = files.flatMap((file) =>
    file.imports.flatMap((imported) => violation(file.path, imported) ?? []),
  );
  return [...new Set(found)];
}

/** The violations of a file with this path and text. */
export function violationsOf(path: string, text: string): string[] {
  return violations([{ path, text, imports: importsOf(path, text) }]);
}
