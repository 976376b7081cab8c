/**
 * The token with which a node joins, for root, and a configuration file for the other machine. The token is hidden until the
 * user reveals it.
 */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Eye, EyeOff } from 'lucide-react';
import { useState } from 'react';
import { NODE_ID_UNSET } from '../../../core/node-toml.ts';
import { type Answered, call } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import { Button, IconButton } from '../../ui/button.tsx';
import { Copy } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, inputClass, TextField } from '../../ui/field.tsx';
import { ActionError, Failed, Skeleton } from '../../ui/states.tsx';
import { spanText, useNow } from '../../ui/time.tsx';

export function JoinNodeDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Join node with token"
      description="On the other machine, save this configuration and start svc. Then register the node here."
      wide
    >
      <JoinNode />
    </Dialog>
  );
}

function JoinNode() {
  // Not cached: each read is in the audit log, and a token may have been used meanwhile.
  const read = useQuery({
    queryKey: keys.bootstrap_token,
    queryFn: () => call('getBootstrapToken'),
    gcTime: 0,
    refetchOnMount: 'always',
  });
  if (read.data) return <JoinToken {...read.data} />;
  return read.error ? <Failed error={read.error} retry={() => void read.refetch()} /> : <Skeleton rows={4} />;
}

function JoinToken({ token, toml: template, expires_at }: Answered<'getBootstrapToken'>) {
  const [revealed, setRevealed] = useState(false);
  const [node_id, setNodeId] = useState('');
  const id = node_id.trim();
  const toml = id === '' ? template : template.replace(JSON.stringify(NODE_ID_UNSET), JSON.stringify(id));
  const veil = (text: string) => (revealed ? text : text.replaceAll(token, '•'.repeat(24)));
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-end gap-2">
        <TextField label="Token" className="flex-1" readOnly value={veil(token)} mono />
        <IconButton
          label={revealed ? 'Hide token' : 'Show token'}
          icon={revealed ? <EyeOff aria-hidden /> : <Eye aria-hidden />}
          onClick={() => setRevealed(!revealed)}
        />
        <Copy text={token} label="Copy token" />
      </div>
      <p className="text-muted text-sm">
        {expires_at === null ? (
          'This token is configured in internal_grpc.bootstrap.token and is valid for any number of nodes.'
        ) : (
          <Until at={expires_at} />
        )}
      </p>
      <TextField
        label="Node ID"
        hint="Optional. The ID that you will register."
        value={node_id}
        onText={setNodeId}
        placeholder="gpu-1"
        spellCheck={false}
        autoComplete="off"
        className="sm:max-w-60"
      />
      <Field
        label="Configuration"
        hint="Save as ~/.config/svc/config.toml, or pass the file with svc --config."
      >
        {(control) => (
          <textarea
            {...control}
            readOnly
            rows={9}
            wrap="off"
            value={veil(toml)}
            className={`${inputClass} resize-none font-mono text-sm`}
          />
        )}
      </Field>
      <div>
        <Copy text={toml} label="Copy TOML" />
      </div>
      {expires_at !== null && <RotateToken />}
    </div>
  );
}

function RotateToken() {
  const queries = useQueryClient();
  const [is_confirming, setConfirming] = useState(false);
  const rotate = useMutation({
    mutationFn: () => call('rotateBootstrapToken'),
    onSuccess: (shown) => {
      queries.setQueryData(keys.bootstrap_token, shown);
      setConfirming(false);
    },
  });
  return (
    <>
      <ActionError error={rotate.error} />
      {is_confirming ? (
        <div className="flex flex-wrap items-center gap-2">
          <span>
            This invalidates all earlier tokens, including any that a node is using to join right now.
          </span>
          <Button variant="danger" busy={rotate.isPending} onClick={() => rotate.mutate()}>
            Rotate token
          </Button>
          <Button onClick={() => setConfirming(false)}>Cancel</Button>
        </div>
      ) : (
        <Button className="self-start" onClick={() => setConfirming(true)}>
          Rotate token…
        </Button>
      )}
    </>
  );
}

function Until({ at }: { at: string }) {
  const left = Date.parse(at) - useNow();
  return left <= 0
    ? 'This token has expired. Rotate it to get a new one.'
    : `Valid for one node. Expires in ${spanText(left)}.`;
}
