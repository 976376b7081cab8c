/**
 * One permission review: the request, everything needed to decide, and the options in the agent's wording and order. Number
 * keys answer only while the card has the focus; a card never takes the focus on its own.
 */
import { Link } from '@tanstack/react-router';
import { Check, CircleSlash, Infinity as Lasting, TriangleAlert } from 'lucide-react';
import { type KeyboardEvent, type MouseEvent, memo, useContext, useId, useState } from 'react';
import type { Option } from '../../acp/transcript/items.ts';
import { escapeHidden } from '../../core/visible.ts';
import type { AgentRecord } from '../api/queries.ts';
import { useSession } from '../api/session.ts';
import { folderOf, lastPart, shortBranch } from '../screens/agents/order.ts';
import { table } from '../table.ts';
import { Button } from '../ui/button.tsx';
import { cx } from '../ui/cx.ts';
import { isEarlyPress } from '../ui/early-press.ts';
import { hasModifier, isTyping, MOD } from '../ui/keys.ts';
import { useOnline } from '../ui/online.ts';
import { ObservedPermissionMode } from '../ui/permission-mode.tsx';
import { ActionError } from '../ui/states.tsx';
import { Ago, spanText } from '../ui/time.tsx';
import { Truncated } from '../ui/truncated.tsx';
import { CardBar, CardBody, CardFrame, CardKeysContext, CardScreenContext } from '../waiting/card-frame.tsx';
import { type Reply, useAnswer } from './answer.ts';
import { Evidence } from './evidence.tsx';
import { RejectForm, type RejectionDraft, UnsentMessage, useRejectionDraft } from './reject.tsx';
import {
  isLasting,
  optionGroups,
  outcomeText,
  type ReviewView,
  rejection,
  requesterText,
} from './review-view.ts';

export interface ReviewCardProps {
  review: ReviewView;
  agent: AgentRecord | undefined;
  /** The name of the team; undefined if it is not known yet. */
  team?: string | undefined;
  /** Shows the agent's name, if the card is not in its conversation. */
  named?: boolean | undefined;
  className?: string;
}

export const ReviewCard = memo(function ReviewCard({
  review,
  agent,
  team,
  named,
  className,
}: ReviewCardProps) {
  const id = useId();
  const me = useSession()?.user.username ?? null;
  const online = useOnline();
  const { call, options, settled } = review;
  const [rejecting, setRejecting] = useState(false);
  const draft = useRejectionDraft(review);
  const answer = useAnswer(review, (reply) => {
    if (reply.type === 'option') draft.setText((now) => (now.trim() === reply.message ? '' : now));
    draft.setSent('');
  });
  const give = (reply: Reply) => {
    if (!online || answer.isPending) return;
    draft.setSent((reply.type === 'option' && reply.message) || '');
    answer.mutate(reply);
  };
  const closeForm = (event: KeyboardEvent<HTMLElement>) => {
    event.preventDefault();
    event.stopPropagation();
    event.currentTarget.focus({ preventScroll: true });
    setRejecting(false);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    if (rejecting) {
      // The options are not in view, so digits must not choose one.
      if (event.key === 'Escape' && !hasModifier(event.nativeEvent)) closeForm(event);
      return;
    }
    if (hasModifier(event.nativeEvent) || event.repeat || isTyping(event.nativeEvent)) return;
    if (event.key === 'r' && rejection(review)) {
      event.preventDefault();
      event.stopPropagation();
      setRejecting(true);
      return;
    }
    const option = /^[1-9]$/.test(event.key) ? options[Number(event.key) - 1] : undefined;
    if (!option) return;
    event.preventDefault();
    event.stopPropagation();
    if (!isEarlyPress(event.currentTarget, event.nativeEvent))
      give({ type: 'option', option_id: option.option_id });
  };
  const label = settled
    ? { 'aria-label': escapeHidden(`${call.title}: ${outcomeText(review, me)}`) }
    : { 'aria-labelledby': id };
  return (
    <CardFrame
      card={review.review_id}
      open={settled === null}
      answered={answer.isPending || answer.isSuccess}
      data-review={review.review_id}
      onKeyDown={onKeyDown}
      {...label}
      {...(className && { className })}
    >
      {settled ? (
        <>
          <Settled review={review} agent={agent} named={named} me={me} />
          {!answer.isPending && <UnsentMessage agent_id={review.agent_id} draft={draft} />}
        </>
      ) : (
        <OpenReview
          {...{ id, review, agent, team, named, online }}
          busy={answer.isPending}
          error={answer.error}
          draft={draft}
          rejecting={rejecting}
          onReject={setRejecting}
          onAnswer={give}
        />
      )}
    </CardFrame>
  );
});

interface OpenReviewProps extends Omit<ReviewCardProps, 'className'> {
  /** The id of the element with the title. */
  id: string;
  online: boolean;
  busy: boolean;
  error: unknown;
  draft: RejectionDraft;
  /** The form for a message is open. */
  rejecting: boolean;
  onReject: (rejecting: boolean) => void;
  onAnswer: (reply: Reply) => void;
}

function OpenReview({
  id,
  review,
  agent,
  team,
  named,
  online,
  busy,
  error,
  draft,
  rejecting,
  onReject,
  onAnswer,
}: OpenReviewProps) {
  const { options } = review;
  const reject = rejection(review);
  const fills_screen = useContext(CardScreenContext) !== null;
  return (
    <>
      <CardBody>
        <Asked {...{ id, review, agent, team, named }} />
      </CardBody>
      <CardBar>
        {rejecting && reject ? (
          <RejectForm
            draft={draft}
            option={reject}
            disabled={!online || busy}
            onSend={(message) => onAnswer({ type: 'option', option_id: reject.option_id, message })}
            onClose={() => onReject(false)}
          />
        ) : (
          <Options options={options} disabled={!online || busy} onChoose={onAnswer} />
        )}
        {!online && <p className="text-muted">You are offline. Answer when you are back online.</p>}
        <ActionError error={error} />
        <footer
          className={cx(
            'flex flex-wrap items-center justify-between gap-2 text-muted text-sm',
            !fills_screen && 'border-line border-t pt-1',
          )}
        >
          <span>
            {busy ? (
              'Answering…'
            ) : rejecting ? (
              <FormKeysHint />
            ) : (
              <KeysHint count={options.length} can_reject={reject !== undefined} />
            )}
          </span>
          <span className="flex flex-wrap gap-1">
            {reject && !rejecting && (
              <Button variant="quiet" disabled={!online || busy} onClick={() => onReject(true)}>
                Reject with message
              </Button>
            )}
            <Button
              variant="quiet"
              disabled={!online || busy}
              onClick={() => onAnswer({ type: 'cancel_turn' })}
            >
              Cancel turn
            </Button>
          </span>
        </footer>
      </CardBar>
    </>
  );
}

/** The request, with everything needed to decide. */
function Asked({
  id,
  review,
  agent,
  team,
  named,
}: Pick<OpenReviewProps, 'id' | 'review' | 'agent' | 'team' | 'named'>) {
  const { call } = review;
  const fills_screen = useContext(CardScreenContext) !== null;
  return (
    <>
      <header className="flex flex-wrap items-center gap-x-2 text-sm">
        <span className="inline-flex items-center gap-1 font-medium text-needs">
          <TriangleAlert aria-hidden className="size-3.5" /> Permission · {escapeHidden(call.tool_kind)}
        </span>
        {named && <AgentName review={review} agent={agent} />}
        {(named || fills_screen) && agent && <ObservedPermissionMode agent={agent} />}
        <span className="ml-auto text-muted">
          asked <Ago at={review.asked_at} />
        </span>
      </header>
      <p
        id={id}
        className={cx(
          'whitespace-pre-wrap break-words font-semibold text-prose',
          call.tool_kind === 'execute' && 'font-mono',
        )}
      >
        <bdi>{escapeHidden(call.title) || 'Untitled request'}</bdi>
      </p>
      <Where review={review} agent={agent} team={team} />
      {review.too_large !== null && (
        <p className="text-needs">
          The request is too large to show ({review.too_large} bytes). Open the agent's Events tab.
        </p>
      )}
      {review.omitted.length > 0 && (
        <p className="break-words text-needs">
          The request is too large to show in full. It lacks{' '}
          <bdi>{escapeHidden(review.omitted.join(', '))}</bdi>. Open the agent's Events tab.
        </p>
      )}
      <Evidence call={call} workdir={agent?.workdir} />
    </>
  );
}

function KeysHint({ count, can_reject }: { count: number; can_reject: boolean }) {
  const { select_key } = useContext(CardKeysContext);
  if (count === 0) return 'The agent offers no options. Cancel the turn to continue.';
  const digits = count === 1 ? '1' : `1–${Math.min(9, count)}`;
  return (
    <span className="pointer-coarse:hidden">
      <span className="group-focus-within/card:hidden">
        {select_key !== null && `Press ${select_key} to select, then ${digits}`}
      </span>
      <span className="hidden group-focus-within/card:inline">
        {digits} answer · {can_reject && 'r reject with message · '}Esc leaves
      </span>
    </span>
  );
}

/** While the form for a message is open. */
function FormKeysHint() {
  return (
    <span className="hidden group-focus-within/card:inline pointer-coarse:hidden">
      {MOD} ⏎ sends · Esc goes back to the options
    </span>
  );
}

function Options({
  options,
  disabled,
  onChoose,
}: {
  options: readonly Option[];
  disabled: boolean;
  onChoose: (reply: Reply) => void;
}) {
  const lastingId = useId();
  const groups = optionGroups(options);
  const fills_screen = useContext(CardScreenContext) !== null;
  return (
    <div
      className={cx(
        'flex flex-col gap-3 sm:flex-row sm:flex-wrap sm:items-center',
        fills_screen ? barOptionsClass : inlineOptionsClass,
      )}
    >
      {groups.map(({ lasting, options: group }) => (
        <div
          key={group[0]!.option_id}
          className="flex min-w-0 flex-col gap-2 sm:flex-row sm:flex-wrap sm:items-center"
        >
          {group.map((option) => (
            <OptionButton
              key={option.option_id}
              option={option}
              digit={options.indexOf(option) + 1}
              disabled={disabled}
              describedBy={lasting ? lastingId : undefined}
              onChoose={onChoose}
            />
          ))}
        </div>
      ))}
      {/* Between the buttons, it would push the last ones to another row. */}
      {groups.some(({ lasting }) => lasting) && (
        <span className={captionClass}>
          <span title={lastingText} className="inline-flex h-5 items-center gap-1 sm:pointer-fine:ml-3">
            <Lasting aria-hidden className="size-4 shrink-0" />
            <span id={lastingId} className="sm:pointer-fine:hidden">
              {lastingText}
            </span>
            {/* There is room for only a few words beside the buttons. The tooltip has the whole sentence. */}
            <span aria-hidden className="hidden sm:pointer-fine:inline">
              also next time
            </span>
          </span>
        </span>
      )}
    </div>
  );
}

const lastingText = 'also applies to later requests; the agent decides which';
/** Beside the buttons, the caption takes only the width that is left. Without room, it wraps below the empty first item, out of view. */
const captionClass =
  'min-w-0 text-muted text-sm sm:pointer-fine:-ml-3 sm:pointer-fine:flex sm:pointer-fine:h-5 sm:pointer-fine:flex-1 sm:pointer-fine:flex-wrap sm:pointer-fine:overflow-hidden sm:pointer-fine:before:h-5';

/** Four options fit, also with captions; more of them scroll. */
const barOptionsClass = '-m-1 max-h-[min(17.5rem,50dvh)] overflow-y-auto p-1';
/**
 * On phones the options of the opened card stay within reach of the thumb while the evidence scrolls. Those of other cards
 * would cover a request that nobody has read.
 */
const inlineOptionsClass =
  'max-sm:bottom-0 max-sm:group-focus-within/card:sticky max-sm:-mx-3 max-sm:max-h-60 max-sm:overflow-y-auto max-sm:border-line max-sm:border-t max-sm:bg-raised max-sm:px-3 max-sm:py-2';

const optionStyles = table({
  allow_once: 'border-completed/70 text-completed',
  allow_always: 'border-completed/70 text-completed',
  reject_once: 'border-failed/60 text-failed',
  reject_always: 'border-failed/60 text-failed',
});

function OptionButton({
  option,
  digit,
  disabled,
  describedBy,
  onChoose,
}: {
  option: Option;
  digit: number;
  disabled: boolean;
  describedBy: string | undefined;
  onChoose: (reply: Reply) => void;
}) {
  const onClick = (event: MouseEvent) => {
    // The second click of a double click may hit the next card, which has moved into this place.
    if (event.detail <= 1) onChoose({ type: 'option', option_id: option.option_id });
  };
  return (
    <button
      type="button"
      disabled={disabled}
      aria-describedby={describedBy}
      title={describedBy && lastingText}
      onClick={onClick}
      className={cx(
        'tap inline-flex min-w-0 items-center gap-2 rounded-md border px-3 py-1 text-left font-medium disabled:opacity-50',
        'hover:bg-surface pointer-coarse:min-h-12 pointer-coarse:justify-center',
        optionStyles[option.kind] ?? 'border-line-strong/70',
      )}
    >
      {digit <= 9 && (
        <kbd
          aria-hidden
          className="inline-flex size-4.5 shrink-0 items-center justify-center rounded font-normal font-sans text-muted text-xs group-focus-within/card:bg-accent group-focus-within/card:text-on-accent pointer-coarse:hidden"
        >
          {digit}
        </kbd>
      )}
      {isLasting(option) && <Lasting aria-hidden className="size-4 shrink-0" />}
      <bdi className="min-w-0 break-words">{escapeHidden(option.name)}</bdi>
    </button>
  );
}

function Where({ review, agent, team }: Pick<ReviewCardProps, 'review' | 'agent' | 'team'>) {
  const { member, requester, routed_to } = review;
  const place = agent ? placeName(agent) : null;
  return (
    <p className="flex min-w-0 flex-wrap gap-x-3 text-muted text-sm">
      {agent && (
        <>
          {place !== null && (
            <span className="min-w-0 break-all" title={escapeHidden(agent.workdir)}>
              in <span className="font-mono">{escapeHidden(place)}</span>
            </span>
          )}
          {agent.node_id !== 'main' && <span>on node {agent.node_id}</span>}
        </>
      )}
      {member !== null && (
        <span>
          {team !== undefined && `team ${team}, `}
          member {member}
        </span>
      )}
      {requester !== null && (
        <span className={cx('min-w-0 break-all', requester.unknown_session ? 'text-warning' : 'text-text')}>
          <bdi>{requesterText(requester)}</bdi>
        </span>
      )}
      {routed_to !== null && <span>routed to {routed_to}</span>}
    </p>
  );
}

/** Its repository and branch, or its folder; null if svc made an empty folder for it. The tooltip has the path. */
function placeName(agent: AgentRecord): string | null {
  const { worktree_repo, worktree_branch } = agent;
  if (worktree_repo === null) return folderOf(agent);
  const branch = worktree_branch === null ? [] : [shortBranch(worktree_branch)];
  return [lastPart(worktree_repo), ...branch].join(' · ');
}

function AgentName({ review, agent }: Pick<ReviewCardProps, 'review' | 'agent'>) {
  return (
    <Link
      to="/agents/$agent_id"
      params={{ agent_id: review.agent_id }}
      className="tap inline-flex min-w-0 items-center font-medium hover:underline"
    >
      <span className="break-all">{escapeHidden(agent?.name ?? review.agent_id)}</span>
    </Link>
  );
}

function Settled({
  review,
  agent,
  named,
  me,
}: Pick<ReviewCardProps, 'review' | 'agent' | 'named'> & { me: string | null }) {
  const { settled_at, asked_at, settled, call } = review;
  const Icon = settled?.type === 'chosen' ? Check : CircleSlash;
  return (
    <>
      <Icon aria-hidden className="size-3.5 shrink-0 text-muted" />
      {named && <AgentName review={review} agent={agent} />}
      <span className="min-w-0 break-words">
        <bdi>{escapeHidden(outcomeText(review, me))}</bdi>
        {settled?.type !== 'over' && settled_at !== null && (
          <span className="text-muted"> · waited {spanText(settled_at - asked_at)}</span>
        )}
      </span>
      <Truncated className="min-w-0 text-muted" title={escapeHidden(call.title)}>
        {escapeHidden(call.title)}
      </Truncated>
    </>
  );
}
