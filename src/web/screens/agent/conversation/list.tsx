/** The scrolling conversation: the rows in the window, a button to the latest row, and links to events. */
import { useNavigate, useRouterState } from '@tanstack/react-router';
import { ArrowDown, TriangleAlert } from 'lucide-react';
import { type ReactNode, type RefObject, useEffect, useMemo, useRef, useState } from 'react';
import type { Item } from '../../../../acp/transcript/items.ts';
import type { View } from '../../../../acp/transcript/transcript.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { useMarkSeen } from '../../../api/seen.ts';
import { useStepKeys } from '../../../shell/step-keys.ts';
import { belowClass } from '../../../ui/below-class.ts';
import { Button } from '../../../ui/button.tsx';
import { cx } from '../../../ui/cx.ts';
import { hasModifier, isTyping } from '../../../ui/keys.ts';
import { CardKeysContext } from '../../../waiting/card-frame.tsx';
import { focusedCard } from '../../../waiting/focus.ts';
import { useMissingEvent } from '../missing-event.ts';
import { COLUMN } from './column.ts';
import { type OpenCards, useOpenCards } from './open-cards.ts';
import { RowBlock } from './row.tsx';
import { buildRows, failureNextTo, findItem, holds, isAfterPause, parseSeq } from './rows.ts';
import { TurnBlock } from './turn-block.tsx';
import { listTurns, type TurnRows } from './turns.ts';
import { findElement, useWindow, type Window } from './window.ts';

export function TranscriptList({
  view,
  ready,
  agent,
  end,
  toEnd,
  toCard,
}: {
  view: View;
  /** Everything from before the page was opened has arrived. */
  ready: boolean;
  agent: AgentRecord;
  /** Shown after the last item. */
  end: ReactNode;
  /** Set to a function that scrolls to the end. */
  toEnd: RefObject<(() => void) | null>;
  /** Set to a function that focuses the newest open card, if there is one. */
  toCard: RefObject<(() => void) | null>;
}) {
  const { items, left_out, began_before } = view;
  const frame = useWindow({ left_out, total: items.length });
  const { start, followNewest } = frame;
  const turns = useMemo(
    () => listTurns(buildRows(items, start, frame.end), items, start),
    [items, start, frame.end],
  );
  useMarkSeen(agent.id, view.last_seq, frame.live);
  const target = useTarget(view, ready, frame);
  useEnd(followNewest);
  const cards = useOpenCards(agent.id, items, frame);
  useQuestionKeys(items, target?.seq ?? null, cards);
  useEffect(() => {
    toEnd.current = followNewest;
    toCard.current = () => cards.visit(cards.ids.at(-1));
  }, [toEnd, toCard, followNewest, cards]);
  const after = items[frame.end - 1]?.seq;
  return (
    <CardKeysContext value={card_keys}>
      <div className="relative flex min-h-0 flex-1 flex-col">
        <div
          ref={frame.scroller}
          onScroll={frame.onScroll}
          role="log"
          aria-live="off"
          aria-label="Conversation"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
          tabIndex={0}
          className="scroll-y min-h-0 flex-1 scroll-pt-8"
        >
          <div ref={frame.content} className={cx(COLUMN, 'flex flex-col gap-2 py-3')}>
            {frame.hasOlder ? (
              <Edge key={`older ${start}`} onVisible={frame.showOlder}>
                Earlier
              </Edge>
            ) : (
              (left_out > 0 || began_before) && (
                <p className="text-muted">Earlier items are in the Events tab.</p>
              )
            )}
            <Turns turns={turns} agent={agent} target={target?.key ?? null} />
            {frame.end < items.length ? (
              <Edge key={`newer ${after}`} onVisible={frame.showNewer}>
                Later
              </Edge>
            ) : (
              end
            )}
          </div>
        </div>
        <Pills cards={cards} frame={frame} />
      </div>
    </CardKeysContext>
  );
}

/** `target`: the key of the item in the page's URL. */
function Turns({
  turns,
  agent,
  target,
}: {
  turns: readonly TurnRows[];
  agent: AgentRecord;
  target: string | null;
}) {
  const folder = useMemo(() => ({ agent_id: agent.id, workdir: agent.workdir }), [agent.id, agent.workdir]);
  return turns.map((turn) => (
    <TurnBlock key={turn.key} turn={turn} of_run={agent.run_id !== null}>
      {turn.rows.map((row, at) => (
        <RowBlock
          key={row.key}
          row={row}
          folder={folder}
          agent={agent}
          marked={target !== null && holds(row, target) ? target : null}
          after_pause={isAfterPause(row, turn.rows[at - 1])}
        />
      ))}
    </TurnBlock>
  ));
}

/** The ways to open cards that are out of view, and to the end. */
function Pills({ cards: { ids, unseen, visit }, frame }: { cards: OpenCards; frame: Window }) {
  return (
    <div className={cx(belowClass, 'md:-translate-x-1/2 md:left-1/2')}>
      {unseen > 0 && (
        <Button
          onClick={() => visit(ids[0])}
          className="rounded-full bg-raised text-needs md:shadow-overlay"
          icon={<TriangleAlert aria-hidden />}
        >
          {unseen} {unseen === 1 ? 'question' : 'questions'}
          <span aria-hidden className="pointer-coarse:hidden">
            · n
          </span>
        </Button>
      )}
      {!frame.live && (
        <Button
          onClick={frame.followNewest}
          className="min-w-32 rounded-full bg-raised md:shadow-overlay"
          icon={<ArrowDown aria-hidden />}
        >
          {frame.news > 0 ? `${frame.news} new` : 'Jump to latest'}
        </Button>
      )}
    </div>
  );
}

const card_keys = { select_key: 'n' };

/** Loads more rows when it scrolls into view; also a button. */
function Edge({ onVisible, children }: { onVisible: () => void; children: ReactNode }) {
  const ref = useRef<HTMLButtonElement>(null);
  const latest = useRef(onVisible);
  latest.current = onVisible;
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) latest.current();
    });
    observer.observe(ref.current!);
    return () => observer.disconnect();
  }, []);
  return (
    <Button ref={ref} variant="quiet" onClick={onVisible}>
      {children}
    </Button>
  );
}

/** The item in the page's URL. */
interface Target {
  key: string;
  /** The number of its first event. */
  seq: number;
}

/** Scrolls to the item in the page's URL once it is loaded. */
function useTarget(
  { items, last_seq }: View,
  ready: boolean,
  { show, scroller }: ReturnType<typeof useWindow>,
): Target | null {
  const hash = useRouterState({ select: ({ location }) => location.hash });
  const target_seq = parseSeq(hash);
  const [found, setFound] = useState<(Target & { target_seq: number }) | null>(null);
  const done = useRef<number | null>(null);
  useMissingEvent(target_seq, last_seq, ready);
  useEffect(() => {
    if (target_seq === null || target_seq === done.current || last_seq < target_seq) return;
    const item = findItem(items, target_seq) ?? items[0];
    if (!item) return;
    done.current = target_seq;
    setFound({ target_seq, key: item.key, seq: item.seq });
    show(items.indexOf(item));
  }, [target_seq, items, last_seq, show]);
  useEffect(() => {
    if (found && scroller.current)
      findElement(scroller.current, found.key)?.scrollIntoView({ block: 'center' });
  }, [found, scroller]);
  return found?.target_seq === target_seq ? found : null;
}

/**
 * `n` and `p` visit the open questions, then the failures. A failure is put into the URL, which shows and marks it. A new
 * question is visited before further failures.
 */
function useQuestionKeys(items: readonly Item[], from: number | null, { ids, visit }: OpenCards): void {
  const navigate = useNavigate();
  /** The questions that were open when the keys went on to the failures. */
  const passed = useRef<string | null>(null);
  useStepKeys((direction) => {
    const all = ids.join(' ');
    const focused = ids.indexOf(focusedCard() ?? '');
    const start = direction === 1 ? 0 : ids.length - 1;
    const question = ids[focused === -1 ? start : focused + direction];
    const is_passed = passed.current === all && focused === -1;
    const failure = failureNextTo(items, from, direction);
    if (question !== undefined && (!is_passed || !failure)) {
      passed.current = null;
      visit(question);
      return;
    }
    if (!failure) return;
    passed.current = all;
    // A digit must not answer a card that is out of view.
    if (focused !== -1) (document.activeElement as HTMLElement).blur();
    const hash = `e${failure.seq}`;
    void navigate({
      to: '.',
      search: true,
      hash,
      replace: true,
      resetScroll: false,
      hashScrollIntoView: false,
    });
  });
}

function useEnd(followNewest: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'End' || hasModifier(event) || isTyping(event)) return;
      event.preventDefault();
      followNewest();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [followNewest]);
}
