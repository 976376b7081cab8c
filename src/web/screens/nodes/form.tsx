/** Registering a node, or changing what is registered: five fields, each with the server's words beside it. */
import { useMutation } from '@tanstack/react-query';
import type { FormEvent } from 'react';
import { useActKey } from '../../api/act-key.ts';
import { call, wordsOf } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { useDraft } from '../../ui/drafts.ts';
import { TextField } from '../../ui/field.tsx';
import { useNodesAgain } from './data.ts';
import { type NodeField, type NodeRecord, nodeFieldOf } from './health.ts';

interface Fields {
  id: string;
  name: string;
  grpc_target: string;
  tls_server_name: string;
  default_worktree_root: string;
}

const EMPTY: Fields = { id: '', name: '', grpc_target: '', tls_server_name: '', default_worktree_root: '' };

function bodyOf(fields: Fields) {
  const { id, name, grpc_target, tls_server_name, default_worktree_root } = fields;
  return {
    id: id.trim(),
    // Named by its id where nobody names it.
    name: name.trim() || id.trim(),
    grpc_target: grpc_target.trim(),
    tls_server_name: tls_server_name.trim() || null,
    default_worktree_root: default_worktree_root.trim() || null,
  };
}

/** `node`: that one is changed; null: one is registered. `id`: what it is likely to be called. */
export function NodeForm({
  node,
  id = '',
  onClose,
  onDone,
}: {
  node: NodeRecord | null;
  id?: string;
  onClose: () => void;
  onDone: (node: NodeRecord) => void;
}) {
  const [text, setText] = useDraft(node === null ? 'node.new' : `node.edit.${node.id}`);
  const fields = { ...EMPTY, ...(id !== '' && { id }), ...(node && fieldsOf(node)), ...read(text) };
  const change = (next: Partial<Fields>) => setText(JSON.stringify({ ...fields, ...next }));
  const keyOf = useActKey();
  const again = useNodesAgain();
  const save = useMutation({
    mutationFn: () => {
      const body = bodyOf(fields);
      if (node !== null) return call('updateAgentNode', { params: { node_id: node.id }, body });
      return call('registerAgentNode', { body, idempotency_key: keyOf(body) });
    },
    onSuccess: (saved) => {
      again();
      setText('');
      onDone(saved);
    },
  });
  const words = save.error ? wordsOf(save.error) : '';
  const place = words === '' ? null : nodeFieldOf(words, node === null);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!save.isPending) save.mutate();
  };
  const field = (name: keyof Fields, label: string, hint: string, placeholder: string) => (
    <TextField
      label={label}
      hint={hint}
      error={place === (name as NodeField) && words}
      autoFocus={name === (node === null ? 'id' : 'grpc_target')}
      value={fields[name]}
      onText={(text) => change({ [name]: text })}
      placeholder={placeholder}
      spellCheck={false}
      autoComplete="off"
      autoCapitalize="off"
    />
  );
  return (
    <Dialog open onClose={onClose} title={node === null ? 'Register node' : `Edit ${node.id}`}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        {node === null && field('id', 'Id', 'must equal node_id there', 'gpu-1')}
        {field('name', 'Name', 'for people', 'GPU box')}
        {field(
          'grpc_target',
          'Target',
          'its internal_grpc.listen, as this machine reaches it',
          'https://gpu.lan:8081',
        )}
        {field('tls_server_name', 'TLS name', 'optional: what its certificate is for, if not that host', '')}
        {field('default_worktree_root', 'Root', 'optional: where worktrees go there', '/srv/wt')}
        {place === 'form' && (
          <p role="alert" className="text-failed">
            {words}
          </p>
        )}
        <Button type="submit" look="primary" busy={save.isPending} className="self-start">
          {node === null
            ? save.isPending
              ? 'Registering…'
              : 'Register'
            : save.isPending
              ? 'Saving…'
              : 'Save'}
        </Button>
      </form>
    </Dialog>
  );
}

function fieldsOf(node: NodeRecord): Fields {
  const { id, name, grpc_target, tls_server_name, default_worktree_root } = node;
  return {
    ...{ id, name, grpc_target },
    tls_server_name: tls_server_name ?? '',
    default_worktree_root: default_worktree_root ?? '',
  };
}

function read(text: string): Partial<Fields> {
  try {
    return text === '' ? {} : (JSON.parse(text) as Partial<Fields>);
  } catch {
    return {};
  }
}
