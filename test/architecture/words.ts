/**
 * Words that this project no longer uses as names, with the words that replace them. `docs/glossary.md` has the reasons.
 * They are ordinary English, so code is checked where it declares a name, and documentation only for the phrases that
 * have no ordinary meaning here.
 */
import { parseSync } from 'vite';

interface Retired {
  /** Parts of a name, in lower case: `words of` matches `wordsOf`, `words_of` and `wordsOfError`. */
  parts: string;
  instead: string;
  /** Only names of types, which begin with a capital letter. */
  types?: true;
  /** Where the word has an accepted meaning: folders or files, with the reason. */
  except?: Record<string, string>;
}

export const retired: readonly Retired[] = [
  { parts: 'door', instead: 'server, listener or endpoint' },
  { parts: 'doors', instead: 'servers, listeners or endpoints' },
  { parts: 'house', instead: 'architecture' },
  { parts: 'rooms', instead: 'modules' },
  { parts: 'floors', instead: 'layers' },
  { parts: 'walls', instead: 'import rules' },
  { parts: 'words of', instead: 'errorMessage, or messageOf' },
  { parts: 'say to', instead: 'the name of the command: completeStep, cancelRun' },
  { parts: 'said to', instead: 'the name of the command: completeStep, cancelRun' },
  { parts: 'hear', instead: 'apply, or the name of the command' },
  { parts: 'run word', instead: 'RunCommand' },
  { parts: 'step word', instead: 'StepCommand' },
  { parts: 'illegal word', instead: 'IllegalTransition' },
  { parts: 'happened', instead: 'RunEvent or AcpEvent', types: true },
  { parts: 'happening', instead: 'RunEvent or AcpEvent' },
  { parts: 'lateness', instead: 'stale attempt' },
  { parts: 'spoiled', instead: 'upstream_failed' },
  { parts: 'cast', instead: 'participants' },
  { parts: 'roster', instead: 'participants' },
  { parts: 'errand', instead: 'step context' },
  { parts: 'farewell', instead: 'beforeStop' },
  { parts: 'unlived', instead: 'newAgentDefaults' },
  { parts: 'doer', instead: 'principal' },
  { parts: 'settlement', instead: 'reconciler' },
  { parts: 'settle session', instead: 'reconcileSession' },
  { parts: 'keeper', instead: 'maintenance', except: { 'src/node/': "a process of a session's wrapper" } },
  { parts: 'told', instead: 'redacted, reported or notified' },
  { parts: 'telling', instead: 'notifier' },
  { parts: 'standing', instead: 'long-poll read' },
  { parts: 'attached', instead: 'PlaneLink', types: true },
  { parts: 'violation', instead: 'ProtocolError', types: true },
  { parts: 'misunderstanding', instead: 'checkCompatibility' },
  { parts: 'exchange', instead: 'AcpTransaction', types: true },
  { parts: 'asking', instead: 'permission review or request' },
  { parts: 'seat', instead: 'ClientHandle' },
  { parts: 'nudge', instead: 'ReconnectSignal' },
  { parts: 'nudges', instead: 'ReconnectSignal' },
  { parts: 'hindered', instead: 'unavailable' },
  { parts: 'hindrance', instead: 'the reason why it is unavailable' },
  { parts: 'dice', instead: 'rng' },
  { parts: 'nonsense', instead: 'malformed' },
  { parts: 'trouble', instead: 'warning' },
  { parts: 'troubles', instead: 'warnings' },
  { parts: 'half made', instead: 'incomplete' },
  { parts: 'twin', instead: 'second loopback listener' },
  { parts: 'go on', instead: 'continue' },
  { parts: 'goes on', instead: 'continues' },
];

/** Phrases that no page of the documentation uses. */
export const phrases: readonly { pattern: RegExp; instead: string }[] = [
  { pattern: /\bstanding reads?\b/i, instead: 'long-poll read' },
  { pattern: /\bstop (the )?turn\b/i, instead: 'cancel the turn' },
  { pattern: /\b(is|are|was|were) told\b/i, instead: 'is notified, or receives' },
  { pattern: /\b(goes|went|going) on\b/i, instead: 'continues' },
  { pattern: /\bfor ever\b/i, instead: 'permanently, or without a limit' },
  { pattern: /\bcomes of it\b/i, instead: 'the result' },
  {
    pattern: /\b(doors?|walls|floors) of the (service|plane|house)\b/i,
    instead: 'listener, module or layer',
  },
  {
    pattern: /\b(doer|errand|farewell|hindered|misunderstandings?|nonsense)\b/i,
    instead: 'see docs/glossary.md',
  },
];

export interface RetiredName {
  name: string;
  parts: string;
  instead: string;
}

/** Matches every text in which a name could contain a retired word. Parsing takes ten times as long. */
const suspicious = new RegExp(retired.map(({ parts }) => parts.replaceAll(' ', '_?')).join('|'), 'i');

/** Declared names of a source file, and the name of the file, that contain a retired word. */
export function retiredNames(path: string, text: string): RetiredName[] {
  if (!suspicious.test(path) && !suspicious.test(text)) return [];
  const file = path.split('/').at(-1)!.replace(/\..*$/, '');
  return [...new Set([file, ...declaredNames(path, text)])].flatMap((name) =>
    retired
      .filter(({ parts, types, except = {} }) => {
        if (types && !/^[A-Z][a-z]/.test(name)) return false;
        if (Object.keys(except).some((place) => path.startsWith(place))) return false;
        return ` ${partsOf(name)} `.includes(` ${parts} `);
      })
      .map(({ parts, instead }) => ({ name, parts, instead })),
  );
}

function partsOf(name: string): string {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(/[^A-Za-z0-9]+/)
    .join(' ')
    .toLowerCase();
}

interface Node {
  type: string;
  [key: string]: unknown;
}

/** The key of a node of this type that holds the declared name. */
const DECLARES: Record<string, string> = {
  VariableDeclarator: 'id',
  FunctionDeclaration: 'id',
  ClassDeclaration: 'id',
  TSInterfaceDeclaration: 'id',
  TSTypeAliasDeclaration: 'id',
  TSEnumDeclaration: 'id',
  MethodDefinition: 'key',
  PropertyDefinition: 'key',
  TSPropertySignature: 'key',
  TSMethodSignature: 'key',
  Property: 'key',
};

function declaredNames(path: string, text: string): string[] {
  const names: string[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) {
      for (const one of value) visit(one);
      return;
    }
    if (!isNode(value)) return;
    const key = DECLARES[value.type];
    if (key !== undefined) addNames(value[key], names);
    if (Array.isArray(value.params)) for (const one of value.params) addNames(one, names);
    for (const child of Object.values(value)) if (typeof child === 'object') visit(child);
  };
  visit(parseSync(path, text).program);
  return names;
}

/** Identifiers of a key, a parameter, or a pattern of a destructuring declaration. */
function addNames(node: unknown, names: string[]): void {
  if (!isNode(node)) return;
  if (typeof node.name === 'string') names.push(node.name);
  for (const key of ['left', 'argument', 'parameter', 'value']) addNames(node[key], names);
  for (const key of ['elements', 'properties']) {
    const list = node[key];
    if (Array.isArray(list)) for (const one of list) addNames(one, names);
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
}
