/** Sends the prompt. While a turn runs it queues the prompt, and its menu offers to cancel the turn, so that the prompt is sent at once. */
import { useQuery } from '@tanstack/react-query';
import { ArrowUp, ChevronDown, CircleStop, Square } from 'lucide-react';
import { type AgentRecord, promptsQuery } from '../../../api/queries.ts';
import { appearance } from '../../../shell/appearance.ts';
import { cx } from '../../../ui/cx.ts';
import { MOD } from '../../../ui/keys.ts';
import { Menu } from '../../../ui/menu.tsx';
import { useReplacedGuard } from '../../../ui/replaced.ts';
import { useCancelTurn } from '../turn.ts';

const BOX =
  'tap inline-flex items-center justify-center font-medium transition-colors disabled:opacity-50 [&_svg]:size-4';
const LOOK = `${BOX} bg-accent text-on-accent hover:brightness-110`;

/** How long the button that cancels ignores presses after it has taken the place of *Send*. */
const NEW_MS = 1000;

export function SendButton({
  agent,
  queues,
  is_empty,
  busy,
  disabled,
  onSendNow,
}: {
  agent: AgentRecord;
  /** A turn runs, so that a prompt waits in the queue. */
  queues: boolean;
  /** There is nothing to send. */
  is_empty: boolean;
  busy: boolean;
  disabled: boolean;
  onSendNow: () => void;
}) {
  const guard = useReplacedGuard(queues ? 'queue' : 'send', false, { for_ms: NEW_MS });
  const key = appearance().enter_sends ? 'Enter' : `${MOD}+Enter`;
  if (!queues) {
    return (
      <button
        type="submit"
        disabled={disabled}
        aria-busy={busy || undefined}
        aria-label={busy ? 'Sending…' : 'Send'}
        title={`Send (${key})`}
        className={cx(LOOK, 'min-w-7 rounded-full pointer-coarse:min-w-11')}
      >
        <ArrowUp aria-hidden />
      </button>
    );
  }
  return (
    <>
      {is_empty && <CancelButton agent={agent} guard={guard} />}
      <span className={cx('inline-flex shrink-0', is_empty && 'max-md:hidden')}>
        <button
          type="submit"
          disabled={disabled}
          aria-busy={busy || undefined}
          title={`Queue (${key}): sent when the turn ends`}
          className={cx(LOOK, 'rounded-l-full pr-2 pl-3')}
        >
          {busy ? 'Sending…' : 'Queue'}
        </button>
        <SendMenu agent={agent} disabled={disabled} onSendNow={onSendNow} />
      </span>
    </>
  );
}

/** On phones, where the actions of the page are behind a menu. */
function CancelButton({ agent, guard }: { agent: AgentRecord; guard: ReturnType<typeof useReplacedGuard> }) {
  const { cancelling, cancel } = useCancelTurn(agent);
  return (
    <button
      type="button"
      disabled={cancelling}
      onClick={guard(cancel)}
      aria-label={cancelling ? 'Cancelling…' : 'Cancel turn'}
      className={cx(
        BOX,
        'min-w-7 rounded-full border border-button-line bg-button hover:bg-button-hover pointer-coarse:min-w-11 md:hidden',
      )}
    >
      <Square aria-hidden className="fill-current" />
    </button>
  );
}

function SendMenu({
  agent,
  disabled,
  onSendNow,
}: {
  agent: AgentRecord;
  disabled: boolean;
  onSendNow: () => void;
}) {
  const { data: queued = 0 } = useQuery({
    ...promptsQuery(agent.id),
    select: (prompts) => prompts.filter(({ state }) => state === 'queued').length,
  });
  return (
    <Menu
      trigger={
        <button
          type="button"
          disabled={disabled}
          aria-label="More ways to send"
          className={cx(LOOK, 'rounded-r-full border-ground border-l pr-1.5 pl-1 pointer-coarse:min-w-11')}
        >
          <ChevronDown aria-hidden />
        </button>
      }
      items={[
        {
          label: 'Send now',
          icon: <CircleStop />,
          onSelect: onSendNow,
          disabled: queued > 0,
          hint:
            queued > 0
              ? 'The queued prompts come first'
              : 'Cancels the turn, so that the prompt is sent at once',
        },
      ]}
    />
  );
}
