/** Downloads the output of a session. It is fetched with the token in a header, which must not be in a URL. */
import { useMutation, useQuery } from '@tanstack/react-query';
import { Download as Icon } from 'lucide-react';
import { useState } from 'react';
import { open } from '../../../api/client.ts';
import { type AgentRecord, sessionsQuery } from '../../../api/queries.ts';
import { Button } from '../../../ui/button.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { Field } from '../../../ui/field.tsx';
import { save } from '../../../ui/save.ts';
import { Select } from '../../../ui/select.tsx';
import { ActionError } from '../../../ui/states.tsx';
import { bytesText, fileName } from './save.ts';

type Stream = 'both' | 'stdout' | 'stderr';

export function Download({ agent }: { agent: AgentRecord }) {
  const [is_open, setOpen] = useState(false);
  return (
    <>
      <Button variant="quiet" icon={<Icon aria-hidden />} onClick={() => setOpen(true)}>
        <span className="max-sm:sr-only">Download</span>
      </Button>
      <Dialog open={is_open} onClose={() => setOpen(false)} title="Download output">
        <Choice agent={agent} onDone={() => setOpen(false)} />
      </Dialog>
    </>
  );
}

function Choice({ agent, onDone }: { agent: AgentRecord; onDone: () => void }) {
  const { id: agent_id, name } = agent;
  const read = useQuery(sessionsQuery(agent_id));
  const sessions = read.data ?? [];
  const [chosen, setChosen] = useState<string | null>(null);
  const [stream, setStream] = useState<Stream>('both');
  const session = sessions.find(({ id }) => id === chosen) ?? sessions[0];
  const fetching = useMutation({
    mutationFn: async () => {
      const query = {
        ...(session && { session_id: session.id }),
        ...(stream !== 'both' && { stream }),
      };
      const response = await open('getOutput', { params: { agent_id }, query });
      save(await response.blob(), fileName(name, session?.number ?? 1, stream));
    },
    onSuccess: onDone,
  });
  const error = fetching.error ?? read.error;
  return (
    <form
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        fetching.mutate();
      }}
    >
      <Field label="Session">
        {(control) => (
          <Select
            {...control}
            value={session?.id ?? ''}
            onChange={setChosen}
            choices={sessions.map(({ id, number, state, stdout_bytes, stderr_bytes }) => ({
              value: id,
              label: `${number} · ${state} · ${bytesText(stdout_bytes + stderr_bytes)}`,
            }))}
          />
        )}
      </Field>
      <Field label="Stream">
        {(control) => (
          <Select
            {...control}
            value={stream}
            onChange={(value) => setStream(value as Stream)}
            choices={[
              { value: 'both', label: 'stdout and stderr, in order' },
              { value: 'stdout', label: 'stdout' },
              { value: 'stderr', label: 'stderr' },
            ]}
          />
        )}
      </Field>
      <ActionError error={error} />
      <Button variant="primary" type="submit" busy={fetching.isPending} disabled={!session}>
        {fetching.isPending ? 'Downloading…' : 'Download'}
      </Button>
    </form>
  );
}
