/**
 * The token that a node joins with, for root: hidden until asked for, with a configuration that is ready to be put on
 * the other machine. As text only: what scans a picture is no server.
 */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Eye, EyeOff } from 'lucide-react';
import { useState } from 'react';
import { NODE_ID_UNSET } from '../../../core/node-toml.ts';
import { call } from '../../api/client.ts';
import { Button, IconButton } from '../../ui/button.tsx';
import { Copy } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, inputClass, TextField } from '../../ui/field.tsx';
import { Failed, Refused, Skeleton } from '../../ui/states.tsx';
import { spanText, useNow } from '../../ui/time.tsx';

const KEY = ['bootstrap-token'];

export function JoinNodeDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Join node with token"
      description="On the other machine: save this as its configuration and start svc there. Then register it here."
      wide
    >
      <JoinNode />
    </Dialog>
  );
}

function JoinNode() {
  const queries = useQueryClient();
  // Not kept: each look is in the audit log, and a token may be spent by now.
  const read = useQuery({
    queryKey: KEY,
    queryFn: () => call('getBootstrapToken'),
    gcTime: 0,
    refetchOnMount: 'always',
  });
  const [revealed, setRevealed] = useState(false);
  const [asked, setAsked] = useState(false);
  const [node_id, setNodeId] = useState('');
  const rotate = useMutation({
    mutationFn: () => call('rotateBootstrapToken'),
    onSuccess: (shown) => {
      queries.setQueryData(KEY, shown);
      setAsked(false);
    },
  });
  if (!read.data) {
    return read.error ? (
      <Failed error={read.error} retry={() => void read.refetch()} />
    ) : (
      <Skeleton rows={4} />
    );
  }
  const { token, expires_at } = read.data;
  const id = node_id.trim();
  const toml =
    id === '' ? read.data.toml : read.data.toml.replace(JSON.stringify(NODE_ID_UNSET), JSON.stringify(id));
  const veil = (text: string) => (revealed ? text : text.replaceAll(token, '•'.repeat(24)));
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-end gap-2">
        <TextField label="Token" className="flex-1" readOnly value={veil(token)} mono />
        <IconButton
          label={revealed ? 'Hide the token' : 'Show the token'}
          icon={revealed ? <EyeOff aria-hidden /> : <Eye aria-hidden />}
          onClick={() => setRevealed(!revealed)}
        />
        <Copy text={token} label="Copy token" />
      </div>
      <p className="text-muted text-sm">
        {expires_at === null ? (
          'The token of the configuration: for any number of nodes.'
        ) : (
          <Until at={expires_at} />
        )}
      </p>
      <TextField
        label="Node id"
        hint="what you will register it as; optional here"
        value={node_id}
        onText={setNodeId}
        placeholder="gpu-1"
        spellCheck={false}
        autoComplete="off"
        className="sm:max-w-60"
      />
      <Field label="Configuration" hint="as ~/.config/svc/config.toml, or where svc --config says">
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
      <Refused error={rotate.error} />
      {asked ? (
        <div className="flex flex-wrap items-center gap-2">
          <span>Every token before ends, also one that a node is joining with.</span>
          <Button look="danger" busy={rotate.isPending} onClick={() => rotate.mutate()}>
            Rotate
          </Button>
          <Button onClick={() => setAsked(false)}>Keep it</Button>
        </div>
      ) : (
        expires_at !== null && (
          <Button className="self-start" onClick={() => setAsked(true)}>
            Rotate token…
          </Button>
        )
      )}
    </div>
  );
}

function Until({ at }: { at: string }) {
  const left = Date.parse(at) - useNow();
  return left <= 0
    ? 'It has ended: rotate it for a fresh one.'
    : `For one node, valid for ${spanText(left)} more.`;
}
