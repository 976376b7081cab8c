/** The comments that wait to be sent; they become one prompt. */
import { useMutation } from '@tanstack/react-query';
import { Send } from 'lucide-react';
import { useEffect, useRef } from 'react';
import { escapeHidden } from '../../../../core/visible.ts';
import { call, errorMessage } from '../../../api/client.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { useStreams } from '../../../live/streams.ts';
import { Button } from '../../../ui/button.tsx';
import { Kbd } from '../../../ui/kbd.tsx';
import { isTyping, MOD } from '../../../ui/keys.ts';
import { showToast } from '../../../ui/toast.tsx';
import { type Comments, toPrompt, withoutComments } from './comments.ts';
import type { ChangeComments } from './stored.ts';

export interface CommentsBarProps {
  agent: AgentRecord;
  comments: Comments;
  onChange: ChangeComments;
  onOpen: (path: string) => void;
}

export function CommentsBar({ agent, comments, onChange, onOpen }: CommentsBarProps) {
  const { list } = comments;
  const is_offline = useStreams().badge === 'disconnected';
  const send = useMutation({
    mutationFn: ({ list, key }: Comments) =>
      call('promptAgent', {
        params: { agent_id: agent.id },
        body: { text: toPrompt(list) },
        idempotency_key: key,
      }),
    onSuccess: ({ queued }, sent) => {
      // Comments may have been added meanwhile.
      onChange((now) => withoutComments(now, sent.list));
      showToast(queued ? 'Comments queued until the current turn ends' : 'Comments sent to the agent');
    },
  });
  const why_not = reason(agent, is_offline);
  useSendKey(why_not === null && !send.isPending, () => send.mutate(comments));
  const paths = [...new Set(list.map(({ path }) => path))];
  return (
    <section
      aria-label="Comments"
      className="flex shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-line border-t bg-surface px-3 py-2"
    >
      <span className="font-medium">
        {list.length} {list.length === 1 ? 'comment' : 'comments'}
      </span>
      <span className="flex min-w-0 flex-1 flex-wrap gap-x-2 text-sm">
        {paths.slice(0, 5).map((path) => (
          <button
            key={path}
            type="button"
            title={escapeHidden(path)}
            onClick={() => onOpen(path)}
            className="tap max-w-48 truncate font-mono text-muted underline"
          >
            {escapeHidden(path.slice(path.lastIndexOf('/') + 1))}
          </button>
        ))}
      </span>
      <Button onClick={() => onChange(() => [])} disabled={send.isPending}>
        Discard comments
      </Button>
      <Button
        variant="primary"
        icon={<Send aria-hidden />}
        busy={send.isPending}
        disabled={why_not !== null}
        onClick={() => send.mutate(comments)}
      >
        Send to agent
        <Kbd className="border-transparent bg-transparent text-on-accent pointer-coarse:hidden">{MOD} ⏎</Kbd>
      </Button>
      {(send.error || why_not) && (
        <p role="status" className="w-full text-sm">
          {send.error ? <span className="text-failed">{errorMessage(send.error)}</span> : why_not}
        </p>
      )}
    </section>
  );
}

/** Sends with `⌘⏎` or `Ctrl ⏎`, except in a comment, which these keys add. */
function useSendKey(enabled: boolean, send: () => void): void {
  const latest = useRef(send);
  latest.current = send;
  useEffect(() => {
    if (!enabled) return;
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey) || isTyping(event)) return;
      event.preventDefault();
      latest.current();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [enabled]);
}

function reason({ protocol, status }: AgentRecord, is_offline: boolean): string | null {
  if (protocol !== 'acp')
    return 'This agent does not speak ACP, so it does not accept prompts. Your comments stay here.';
  if (status !== 'running') return 'The agent is not running. Start it to send your comments.';
  return is_offline ? 'You are offline. Your comments stay here until you can send them.' : null;
}
