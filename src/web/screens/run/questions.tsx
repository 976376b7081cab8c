/** What waits for the user in a run, at the top of its page. */
import { useQuery } from '@tanstack/react-query';
import { type RefObject, useLayoutEffect, useRef } from 'react';
import { type AgentRecord, agentsQuery } from '../../api/queries.ts';
import { ElicitationCard } from '../../elicitations/card.tsx';
import { ReviewCard } from '../../reviews/card.tsx';
import { toReviewView } from '../../reviews/review-view.ts';
import { useHandheld } from '../../ui/media.ts';
import { focusHeading } from '../../ui/screen.tsx';
import { CardKeysContext } from '../../waiting/card-frame.tsx';
import { useCardKeys } from '../../waiting/card-keys.ts';
import { CardLink } from '../../waiting/card-link.tsx';
import { focusNextCard, OPEN_CARD, takeLeftCard } from '../../waiting/focus.ts';
import { LazyQuestionCard, LazySignInCard } from '../../waiting/lazy.tsx';
import { keyOf, type WaitingItem } from '../../waiting/queue.ts';

/** The most cards shown at once. */
const SHOWN = 20;

export function Questions({ items, team }: { items: readonly WaitingItem[]; team: string | undefined }) {
  const { data: agents = [] } = useQuery(agentsQuery);
  // On phones a request opens on the whole screen, with its answers within reach of the thumb.
  const is_handheld = useHandheld();
  const section = useRef<HTMLElement>(null);
  const cardKeys = useCardKeys(section);
  // The page itself says why the run waits, and resumes it.
  const shown = items.filter(({ kind }) => kind !== 'run');
  useFocusAfterCard(section, shown);
  if (shown.length === 0) return null;
  return (
    <section ref={section} aria-label="Pending requests" className="flex flex-col gap-2">
      <CardKeysContext value={cardKeys}>
        {shown
          .slice(0, SHOWN)
          .map((item) =>
            is_handheld ? (
              <CardLink key={keyOf(item)} item={item} />
            ) : (
              <Card
                key={keyOf(item)}
                item={item}
                agent={agents.find(({ id }) => id === item.agent_id)}
                team={team}
              />
            ),
          )}
      </CardKeysContext>
      {shown.length > SHOWN && <p className="text-muted">{shown.length - SHOWN} more pending.</p>}
    </section>
  );
}

/**
 * A settled card is removed. If it had the focus, that moves on: after an answer by this user to the next card, otherwise, and
 * after the last card, to the heading of the page.
 */
function useFocusAfterCard(section: RefObject<HTMLElement | null>, shown: readonly WaitingItem[]): void {
  const before = useRef(shown);
  useLayoutEffect(() => {
    const left = before.current.map(({ id }) => takeLeftCard(id));
    before.current = shown;
    const at = left.findIndex((card) => card !== null);
    if (at < 0) return;
    const cards = left[at]!.answered ? section.current?.querySelectorAll<HTMLElement>(OPEN_CARD) : undefined;
    const next = cards?.[at] ?? cards?.[0];
    if (next) focusNextCard(next);
    else focusHeading();
  });
}

function Card({
  item,
  agent,
  team,
}: {
  item: WaitingItem;
  agent: AgentRecord | undefined;
  team: string | undefined;
}) {
  switch (item.kind) {
    case 'permission':
      return <ReviewCard review={toReviewView(item.review)} agent={agent} team={team} named />;
    case 'elicitation':
      return <ElicitationCard elicitation={item.elicitation} agent={agent} named />;
    case 'question':
      return <LazyQuestionCard step={item.step} open agent={agent} named />;
    case 'sign_in':
      return <LazySignInCard agent={agent ?? item.agent} open named />;
    case 'run':
      return null;
  }
}
