/** Messages of the user and the agent, the agent's thoughts, and its plain output. */
import { Brain, ChevronDown, ChevronRight, MessagesSquare } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import type { MessageItem, OutputItem, RelayedItem, UserMessage } from '../../../../acp/transcript/items.ts';
import { escapeHidden } from '../../../../core/visible.ts';
import { ScrollBox } from '../../../ui/scroll-box.tsx';
import { BodyView } from './body.tsx';
import { Elapsed } from './elapsed.tsx';

export function UserPrompt({ item }: { item: UserMessage }) {
  return (
    <div className="rounded-lg bg-surface px-3 py-1.5">
      <p className="font-medium text-muted text-sm">{item.prompt_id === null ? 'Prompt' : 'You'}</p>
      <BodyView body={item.body} grows={false} />
      {item.too_large !== null && (
        <p className="text-muted">This prompt is too large to show ({item.too_large} bytes).</p>
      )}
    </div>
  );
}

export function Message({ item }: { item: MessageItem }) {
  return <BodyView body={item.body} grows={item.ended_ts === null} />;
}

/** One line that opens on a click, and stays open. */
function Folded({ line, children }: { line: ReactNode; children: () => ReactNode }) {
  const [open, setOpen] = useState(false);
  const Chevron = open ? ChevronDown : ChevronRight;
  return (
    <div className="text-muted">
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="tap inline-flex items-center gap-1.5 hover:text-text"
      >
        <Chevron aria-hidden className="size-3.5" />
        {line}
      </button>
      {open && children()}
    </div>
  );
}

export function Thought({ item }: { item: MessageItem }) {
  const line = (
    <>
      <Brain aria-hidden className="size-3.5" />
      <span>
        {item.ended_ts === null ? 'Thinking… ' : 'Thought for '}
        <Elapsed from={item.ts} to={item.ended_ts} />
      </span>
    </>
  );
  return (
    <Folded line={line}>
      {() => (
        <div className="border-line border-l-2 pl-3">
          <BodyView body={item.body} grows={item.ended_ts === null} />
        </div>
      )}
    </Folded>
  );
}

/** A message between the agent and its sub-agents. */
export function RelayedMessage({ item }: { item: RelayedItem }) {
  const line = (
    <>
      <MessagesSquare aria-hidden className="size-3.5" />
      <span className="min-w-0 truncate">
        message from <bdi>{party(item.from)}</bdi> to <bdi>{party(item.to)}</bdi>
      </span>
    </>
  );
  return (
    <Folded line={line}>
      {() => (
        <div className="border-line border-l-2 pl-3">
          <BodyView body={item.body} grows={false} />
        </div>
      )}
    </Folded>
  );
}

function party(name: string | null): string {
  return name === null ? 'the agent' : escapeHidden(name);
}

export function PrintedLines({ item }: { item: OutputItem }) {
  return (
    <Folded line={`printed ${item.lines} ${item.lines === 1 ? 'line' : 'lines'} outside the conversation`}>
      {() => (
        <ScrollBox label="Lines" className="max-h-80 rounded bg-surface p-2">
          <pre className="w-max font-mono text-sm" dir="ltr">
            {item.text}
            {item.omitted_chars > 0 && `\n… ${item.omitted_chars} more characters`}
          </pre>
        </ScrollBox>
      )}
    </Folded>
  );
}
