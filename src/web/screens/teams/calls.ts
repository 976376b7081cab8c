/** Whether the agents of a team need to call the plane to talk to each other. Pure. */
import { defaultNode } from '../../api/default-node.ts';
import { type Doc, getList, getText, isObject } from './document.ts';

interface NodeFlags {
  id: string;
  actor_calls: boolean;
}

/**
 * Whether a member that needs to talk to others runs on a node where it cannot. `nodes`: empty until loaded. `spec`: also of a
 * definition that is being written.
 */
export function lacksActorCalls(spec: Doc, nodes: readonly NodeFlags[]): boolean {
  const members = getList(spec, ['members']);
  if (members.length < 2) return false;
  const leader = getList(spec, ['steps']).length === 0 ? getText(spec, ['leader_member_id']) || null : null;
  return members.some(({ member_id, agent }) => {
    if (!isObject(agent) || !(speaksAcp(agent) || member_id === leader)) return false;
    const node_id = defaultNode(nodes, getText(agent, ['node_id']) || undefined);
    // Nodes of planes of earlier versions do not say it.
    return nodes.some(({ id, actor_calls }) => id === node_id && actor_calls === false);
  });
}

/** An agent that gets prompts, which tell it how to talk to the others. A plain command has only the input of its step. */
function speaksAcp({ protocol = 'auto', preset }: Doc): boolean {
  if (protocol !== 'auto') return protocol === 'acp';
  return typeof preset === 'string' && preset !== 'plain';
}
