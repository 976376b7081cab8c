/**
 * Moves the parts of an API description that several operations repeat (error responses, empty responses, response
 * headers, parameters) into its components, and replaces them with references.
 */
import { scopes } from '../core/grant.ts';
import { documentedProblems } from '../core/other-problems.ts';
import { lacksScope } from '../core/problem.ts';
import { INTERNAL_ERROR } from './status.ts';

type Json = Record<string, unknown>;
type Operations = Record<string, Record<string, Json>>;

const KINDS = ['responses', 'parameters', 'headers'] as const;
type Kind = (typeof KINDS)[number];

/** One place that holds a part, and the name that the part would have as a component. */
interface Place {
  kind: Kind;
  name: string;
  part: Json;
  put(reference: Json): void;
}

/**
 * Replaces every part that occurs at least twice with a reference, in place. `named` are components that keep their names. If
 * two different parts want the same name, the more frequent one gets it and the other one stays where it is.
 * Returns the components.
 */
export function shareRepeated(paths: Operations, named: Record<Kind, Record<string, Json>>): Json {
  const components: Record<Kind, Record<string, Json>> = structuredClone(named);
  for (const places of [...grouped(findPlaces(paths)).values()].sort((a, b) => b.length - a.length)) {
    const { kind, name, part } = places[0]!;
    const known = Object.entries(components[kind]).find(([, component]) => sameJson(component, part))?.[0];
    if (known === undefined && (places.length < 2 || name in components[kind])) continue;
    const used = known ?? name;
    components[kind][used] = part;
    for (const place of places) place.put({ $ref: `#/components/${kind}/${used}` });
  }
  return Object.fromEntries(KINDS.map((kind) => [kind, sorted(components[kind])]));
}

function findPlaces(paths: Operations): Place[] {
  return Object.values(paths)
    .flatMap((methods) => Object.values(methods))
    .flatMap((operation) => {
      const responses = operation.responses as Record<string, Json>;
      const parameters = operation.parameters as Json[];
      return [
        ...Object.entries(responses).flatMap(([status, response]) =>
          status === '204' || Number(status) >= 400
            ? [responsePlace(responses, status, response)]
            : headerPlaces(response),
        ),
        ...parameters.map((part, index) => parameterPlace(parameters, index, part)),
      ];
    });
}

function responsePlace(responses: Record<string, Json>, status: string, part: Json): Place {
  const without_body = status !== '204' && !('content' in part);
  const name =
    status === '204'
      ? 'NoContent'
      : `${responseName(String(part.description))}${without_body ? 'WithoutBody' : ''}`;
  return {
    kind: 'responses',
    name,
    part,
    put: (reference) => {
      responses[status] = reference;
    },
  };
}

function headerPlaces(response: Json): Place[] {
  const headers = response.headers as Record<string, Json>;
  return Object.entries(headers)
    .filter(([, part]) => !('$ref' in part))
    .map(([name, part]) => ({
      kind: 'headers',
      name: pascal(name),
      part,
      put: (reference) => {
        headers[name] = reference;
      },
    }));
}

function parameterPlace(parameters: Json[], index: number, part: Json): Place {
  return {
    kind: 'parameters',
    name: `${pascal(String(part.name))}${pascal(String(part.in))}`,
    part,
    put: (reference) => {
      parameters[index] = reference;
    },
  };
}

function grouped(places: Place[]): Map<string, Place[]> {
  return Map.groupBy(places, ({ kind, part }) => `${kind} ${JSON.stringify(part)}`);
}

/** If several names share a message, the first one wins. */
const nameByMessage = new Map(
  [
    [INTERNAL_ERROR.message, 'internalError'] as const,
    ...Object.entries(documentedProblems).map(([name, make]) => [make().message, name] as const),
    ...scopes.map((scope) => [lacksScope(scope).message, `lacks_scope_${scope}`] as const),
  ].reverse(),
);

/** `AgentNotFoundOrPromptNotFound` for a description that quotes these messages. */
function responseName(description: string): string {
  const messages = [...description.matchAll(/`([^`]+)`/g)].map(([, message]) => message!);
  return messages.map((message) => pascal(nameByMessage.get(message) ?? message)).join('Or');
}

function pascal(text: string): string {
  return text
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean)
    .map((word) => word[0]!.toUpperCase() + word.slice(1))
    .join('');
}

function sorted(components: Record<string, Json>): Json {
  return Object.fromEntries(Object.entries(components).sort(([a], [b]) => (a < b ? -1 : 1)));
}

export function sameJson(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
