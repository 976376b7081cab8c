/** The end of an agent's log, live. The agent's own page has the complete log. */
import { lazy, type ReactNode, Suspense, useLayoutEffect, useRef } from 'react';
import type { Item } from '../../../acp/transcript/items.ts';
import { escapeHidden } from '../../../core/visible.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { type AgentLog, useAgentLog } from '../../live/agent-log.ts';
import { NotLive, Skeleton } from '../../ui/states.tsx';

const ITEMS = 60;
const LINES = 200;
const CHARS = 8000;

// The rows of conversations are large, and not every run has one.
const MemberLog = lazy(() => import('./member-log.tsx'));

export function Latest({ agent, kind }: { agent: AgentRecord; kind: 'conversation' | 'output' }) {
  const log = useAgentLog(agent.id);
  if (log.gone) return <Note>This agent was deleted.</Note>;
  return (
    <>
      {log.failure !== null && <NotLive reason={log.failure} retry={log.retry} />}
      <End>{kind === 'output' ? <Output log={log} /> : <Conversation agent={agent} log={log} />}</End>
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
      className="scroll-y max-h-96 overflow-x-hidden px-3 py-2"
    >
      {children}
    </section>
  );
}

function Note({ children }: { children: ReactNode }) {
  return <p className="px-3 py-4 text-center text-muted">{children}</p>;
}

function Conversation({ agent, log }: { agent: AgentRecord; log: AgentLog }) {
  const items = log.view.items.filter(isShown);
  if (items.length === 0) return <Note>No messages yet.</Note>;
  return (
    <Suspense fallback={<Skeleton rows={3} />}>
      <MemberLog agent={agent} items={items.slice(-ITEMS)} />
    </Suspense>
  );
}

const shown_kinds: readonly Item['kind'][] = ['user_message', 'agent_message', 'tool', 'stop', 'notice'];

/** Thoughts and output are on the agent's own page, and its requests are at the top of the run's page. */
function isShown({ kind }: Item): boolean {
  return shown_kinds.includes(kind);
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
