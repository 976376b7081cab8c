import type { Nodes } from '../services/nodes.ts';
import type { Handlers } from './call.ts';
import { asList } from './list.ts';

export function nodeHandlers(nodes: Nodes): Pick<Handlers, 'listNodes'> {
  return { listNodes: ({ query }) => asList(query, { items: nodes.list() }) };
}
