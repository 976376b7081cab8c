/** The dialog that registers or edits a node. The server's errors are shown at their fields. */
import { useMutation } from '@tanstack/react-query';
import type { FormEvent } from 'react';
import { call, errorMessage, newKey } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { useDraft } from '../../ui/drafts.ts';
import { TextField } from '../../ui/field.tsx';
import { useRefetchNodes } from './data.ts';
import { type NodeField, type NodeRecord, nodeFieldFor } from './health.ts';

interface Fields {
  id: string;
  name: string;
  grpc_target: string;
  tls_server_name: string;
  default_worktree_root: string;
}

const EMPTY: Fields = { id: '', name: '', grpc_target: '', tls_server_name: '', default_worktree_root: '' };

function toBody(fields: Fields) {
  const { id, name, grpc_target, tls_server_name, default_worktree_root } = fields;
  return {
    id: id.trim(),
    // The name defaults to the id.
    name: name.trim() || id.trim(),
    grpc_target: grpc_target.trim(),
    tls_server_name: tls_server_name.trim() || null,
    default_worktree_root: default_worktree_root.trim() || null,
  };
}

const TARGET_HINT = 'https://, the host name of the node, and the port of its internal_grpc.listen';

/** The fields, of which a draft holds those that the user has changed. */
function useNodeForm(node: NodeRecord | null, id: string, onDone: (node: NodeRecord) => void) {
  const [text, setText, last] = useDraft(node === null ? `node.new.${id}` : `node.edit.${node.id}`);
  const draft = read(text);
  const before = node === null ? { ...EMPTY, id } : toFields(node);
  const fields = { ...before, ...draft };
  const change = (next: Partial<Fields>) => {
    const changed = pickChanged(before, { ...draft, ...next });
    setText(Object.keys(changed).length === 0 ? '' : JSON.stringify(changed));
  };
  const refetch = useRefetchNodes();
  const save = useMutation({
    mutationFn: () => {
      const body = toBody(fields);
      if (node !== null) {
        // Nothing else: the form does not know what others have changed since it was opened.
        const changes = pickChanged(toBody(before), body);
        return call('updateAgentNode', { params: { node_id: node.id }, body: changes });
      }
      return call('registerAgentNode', { body, idempotency_key: last.of(body, newKey) });
    },
    onSuccess: (saved) => {
      refetch();
      setText('');
      onDone(saved);
    },
  });
  return { fields, change, discard: text === '' ? null : () => setText(''), save };
}

/** `node`: the node to edit; null: register a new one, with the suggested `id`. */
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
  const { fields, change, discard, save } = useNodeForm(node, id, onDone);
  const message = save.error ? errorMessage(save.error) : '';
  const place = message === '' ? null : nodeFieldFor(message, node === null);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!save.isPending) save.mutate();
  };
  const field = (name: keyof Fields, label: string, hint: string, placeholder: string) => (
    <TextField
      label={label}
      hint={hint}
      error={place === (name as NodeField) && message}
      value={fields[name]}
      onText={(text) => change({ [name]: text })}
      placeholder={placeholder}
      spellCheck={false}
      autoComplete="off"
      autoCapitalize="off"
    />
  );
  const label =
    node === null ? { idle: 'Register node', busy: 'Registering…' } : { idle: 'Save', busy: 'Saving…' };
  return (
    <Dialog open onClose={onClose} title={node === null ? 'Register node' : `Edit ${node.id}`}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        {node === null && field('id', 'ID', 'The node’s server.node_id setting', 'gpu-1')}
        {field('name', 'Name', 'Display name', 'GPU box')}
        {field('grpc_target', 'Target', TARGET_HINT, 'https://gpu.lan:8081')}
        {field(
          'tls_server_name',
          'TLS server name',
          'Optional. The name in the node’s certificate, if it differs from the target host.',
          '',
        )}
        {field(
          'default_worktree_root',
          'Worktree root',
          'Optional. Where the node creates worktrees.',
          '/srv/wt',
        )}
        {place === 'form' && (
          <p role="alert" className="text-failed">
            {message}
          </p>
        )}
        <div className="flex gap-2">
          <Button type="submit" variant="primary" busy={save.isPending}>
            {save.isPending ? label.busy : label.idle}
          </Button>
          {discard && (
            <Button variant="quiet" disabled={save.isPending} onClick={discard}>
              Discard changes
            </Button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

function toFields(node: NodeRecord): Fields {
  const { id, name, grpc_target, tls_server_name, default_worktree_root } = node;
  return {
    ...{ id, name, grpc_target },
    tls_server_name: tls_server_name ?? '',
    default_worktree_root: default_worktree_root ?? '',
  };
}

/** The values that differ from those before. */
function pickChanged<T extends object>(before: T, after: Partial<T>): Partial<T> {
  const entries = Object.entries(after).filter(([name, value]) => value !== before[name as keyof T]);
  return Object.fromEntries(entries) as Partial<T>;
}

function read(text: string): Partial<Fields> {
  try {
    return text === '' ? {} : (JSON.parse(text) as Partial<Fields>);
  } catch {
    return {};
  }
}
