/** Messages of the user and the agent, the agent's thoughts, and its plain output. */
import { Brain, ChevronDown, ChevronRight, MessagesSquare } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import type { MessageItem, OutputItem, RelayedItem, UserMessage } from '../../../../acp/transcript/items.ts';
import { bodyText } from '../../../../acp/transcript/parts.ts';
import { escapeHidden } from '../../../../core/visible.ts';
import { cx } from '../../../ui/cx.ts';
import { ScrollBox } from '../../../ui/scroll-box.tsx';
import { TimeOfDay } from '../../../ui/time.tsx';
import { BodyView } from './body.tsx';
import { Elapsed } from './elapsed.tsx';

/**
 * `of_run`: the agent belongs to a run. The run's prompts are laid out as text and quote what others wrote. The log does not say
 * which prompts the run wrote and which a person, so all are shown as plain text, without an author.
 */
export function UserPrompt({ item, of_run }: { item: UserMessage; of_run: boolean }) {
  return (
    <div className={cx('-mt-2 flow-root', PROMPT_RULE)}>
      <BodyView body={item.body} grows={false} is_markdown={!of_run} />
      {item.too_large !== null && (
        <p className="text-muted">This prompt is too large to show ({item.too_large} bytes).</p>
      )}
    </div>
  );
}

const PROMPT_RULE = 'border-accent border-l-2 pl-3';

/** Who wrote the prompt of a turn, and when. It stays at the top while its turn is on the screen. */
export function PromptHead({
  item,
  of_run,
  is_stuck,
}: {
  item: UserMessage;
  of_run: boolean;
  is_stuck: boolean;
}) {
  return (
    <p
      className={cx(
        'sticky top-0 z-10 flex min-w-0 items-baseline gap-1.5 bg-ground py-0.5 text-muted text-sm',
        PROMPT_RULE,
        is_stuck && 'after:absolute after:inset-x-0 after:bottom-0 after:h-px after:bg-line',
      )}
    >
      <span className="shrink-0 font-medium text-text">
        {item.prompt_id === null || of_run ? 'Prompt' : 'You'}
      </span>
      <span aria-hidden>·</span>
      <TimeOfDay ts={item.ts} />
      {is_stuck && (
        <span aria-hidden className="min-w-0 truncate">
          · {bodyText(item.body).slice(0, 200)}
        </span>
      )}
    </p>
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
