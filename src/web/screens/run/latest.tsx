/** The end of an agent's log, live. The agent's own page has the complete log. */
import { type ReactNode, useLayoutEffect, useRef } from 'react';
import type { Item } from '../../../acp/transcript/items.ts';
import { bodyText } from '../../../acp/transcript/parts.ts';
import { escapeHidden } from '../../../core/visible.ts';
import { type AgentLog, useAgentLog } from '../../live/agent-log.ts';
import { stopText } from '../../transcript/status-text.ts';
import { Status } from '../../ui/status.tsx';

const ITEMS = 60;
const LINES = 200;
const CHARS = 8000;
const PROMPT_CHARS_MAX = 280;

export function Latest({ agent_id, kind }: { agent_id: string; kind: 'conversation' | 'output' }) {
  const log = useAgentLog(agent_id);
  if (log.gone) return <Note>This agent was deleted.</Note>;
  return (
    <>
      {log.failure !== null && (
        <p role="status" className="px-3 pt-2 text-needs">
          {log.failure}
        </p>
      )}
      <End>{kind === 'output' ? <Output log={log} /> : <Conversation log={log} />}</End>
    </>
  );
}

/** Follows the end, unless the user scrolls up. */
function End({ children }: { children: ReactNode }) {
  const box = useRef<HTMLElement>(null);
  const atEnd = useRef(true);
  useLayoutEffect(() => {
    if (box.current && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  });
  return (
    <section
      ref={box}
      aria-label="Latest"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        atEnd.current = scrollHeight - scrollTop - clientHeight < 24;
      }}
      className="scroll-y max-h-80 px-3 py-2"
    >
      {children}
    </section>
  );
}

function Note({ children }: { children: ReactNode }) {
  return <p className="px-3 py-4 text-center text-muted">{children}</p>;
}

function Conversation({ log }: { log: AgentLog }) {
  const items = log.view.items.filter(isShown);
  if (items.length === 0) return <Note>No messages yet.</Note>;
  return (
    <ol className="flex flex-col gap-2">
      {items.slice(-ITEMS).map((item) => (
        <li key={item.key} className="min-w-0 break-words">
          <Line item={item} />
        </li>
      ))}
    </ol>
  );
}

const shown_kinds = ['user_message', 'agent_message', 'tool', 'stop', 'notice'] as const;
type ShownItem = Item & { kind: (typeof shown_kinds)[number] };

/** Thoughts and output are on the agent's own page, and its requests are at the top of the run's page. */
function isShown(item: Item): item is ShownItem {
  return (shown_kinds as readonly string[]).includes(item.kind);
}

function Line({ item }: { item: ShownItem }) {
  switch (item.kind) {
    case 'tool':
      return (
        <span className="flex flex-wrap items-center gap-x-2 text-sm">
          <code className="min-w-0 break-all font-mono">{escapeHidden(item.call.title)}</code>
          <Status status={item.status} />
        </span>
      );
    case 'user_message': {
      const text = escapeHidden(bodyText(item.body));
      return (
        <details className="rounded bg-surface px-2 py-1">
          <summary className="cursor-pointer text-muted text-sm">
            Prompt: {text.slice(0, PROMPT_CHARS_MAX)}
            {text.length > PROMPT_CHARS_MAX && '…'}
          </summary>
          <p className="mt-1 whitespace-pre-wrap">{text.slice(0, CHARS)}</p>
        </details>
      );
    }
    case 'agent_message':
      return (
        <p className="whitespace-pre-wrap text-prose">{escapeHidden(bodyText(item.body)).slice(-CHARS)}</p>
      );
    case 'stop':
      return <p className="text-muted text-sm">{stopText(item.reason).text}</p>;
    case 'notice':
      return <p className="text-muted text-sm">{escapeHidden(item.text)}</p>;
  }
}

function Output({ log: { lines } }: { log: AgentLog }) {
  if (lines.last === 0) return <Note>No output yet.</Note>;
  const text = lines.copy(Math.max(lines.first, lines.last - LINES), lines.last);
  return (
    <pre className="whitespace-pre-wrap break-words font-mono text-sm">
      {escapeHidden(text).slice(-CHARS)}
    </pre>
  );
}
