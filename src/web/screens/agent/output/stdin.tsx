/** The field that sends a line to the agent's standard input. */
import type { FormEvent } from 'react';
import { useAct } from '../../../api/act.ts';
import { call, errorMessage } from '../../../api/client.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { useStreams } from '../../../live/streams.ts';
import { Button } from '../../../ui/button.tsx';
import { useDraft } from '../../../ui/drafts.ts';
import { inputClass } from '../../../ui/field.tsx';

interface Sending {
  data: string;
  eof: boolean;
  /** The same input to another session is another request. */
  session_id: string | null;
}

export function Stdin({ agent }: { agent: AgentRecord }) {
  const { id: agent_id, session_id } = agent;
  const [text, setText, last] = useDraft(`stdin.${agent_id}`);
  const is_offline = useStreams().badge === 'disconnected';
  const send = useAct(
    ({ data, eof }: Sending, idempotency_key) =>
      call('sendInput', { params: { agent_id }, body: { data, eof }, idempotency_key }),
    (_, { data, eof }) => {
      const sent = data.slice(0, -1);
      // The user may have continued to type.
      if (!eof) setText((now) => (now.startsWith(sent) ? now.slice(sent.length) : now));
    },
    last,
  );
  const why_not =
    agent.status !== 'running'
      ? 'The agent is not running. Start it to send input.'
      : is_offline
        ? 'You are offline.'
        : null;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (why_not === null && !send.isPending) send.mutate({ data: `${text}\n`, eof: false, session_id });
  };
  return (
    <form onSubmit={submit} className="flex flex-wrap items-center gap-2 border-line border-t px-3 py-2">
      <input
        aria-label="Standard input"
        aria-describedby="stdin-says"
        value={text}
        onChange={(event) => setText(event.target.value)}
        placeholder="Send a line to standard input"
        spellCheck={false}
        autoComplete="off"
        className={`${inputClass} w-auto! min-w-40 flex-1 font-mono text-sm`}
      />
      <Button type="submit" variant="primary" busy={send.isPending} disabled={why_not !== null}>
        Send
      </Button>
      <Button
        busy={send.isPending}
        disabled={why_not !== null}
        title="Closes the agent’s standard input"
        onClick={() => send.mutate({ data: '', eof: true, session_id })}
      >
        Close input
      </Button>
      <p id="stdin-says" role="status" className="w-full text-sm empty:hidden">
        {send.error ? <span className="text-failed">{errorMessage(send.error)}</span> : why_not}
      </p>
    </form>
  );
}
