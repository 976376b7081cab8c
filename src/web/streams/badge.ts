/** The badge that shows whether the page is live: five states, with the texts that the specification fixes. Pure. */
export const badgeTexts = {
  idle: 'Online · SSE idle',
  connecting: 'Online · SSE connecting',
  connected: 'Online · SSE connected',
  reconnecting: 'Online · SSE reconnecting',
  disconnected: 'Offline · SSE disconnected',
} as const;
export type BadgeState = keyof typeof badgeTexts;

/** After reconnecting for this long, the badge offers to reload the page. */
export const OFFER_REFRESH_MS = 60_000;

export interface Badge {
  readonly state: BadgeState;
  /** Whether an agent is selected; the state alone does not show it while the browser is offline. */
  readonly selected: boolean;
  /** When this state began, in Unix milliseconds. */
  readonly since: number;
  /** Unix milliseconds; only while reconnecting. */
  readonly next_attempt_at: number | null;
}

export type BadgeInput =
  | { type: 'selected' | 'deselected' | 'connected' | 'offline' | 'online' }
  | { type: 'interrupted'; next_attempt_at: number | null };

export interface BadgeView {
  badge: BadgeState;
  text: string;
  offer_refresh: boolean;
  next_attempt_at: number | null;
}

export function idleBadge(now: number): Badge {
  return { state: 'idle', selected: false, since: now, next_attempt_at: null };
}

export function step(badge: Badge, input: BadgeInput, now: number): Badge {
  const selected = input.type === 'selected' || (badge.selected && input.type !== 'deselected');
  const state = nextState(badge, input, selected);
  let next_attempt_at = state === 'reconnecting' ? badge.next_attempt_at : null;
  if (state === 'reconnecting' && input.type === 'interrupted') next_attempt_at = input.next_attempt_at;
  const is_new = state !== badge.state || input.type === 'selected';
  return { state, selected, since: is_new ? now : badge.since, next_attempt_at };
}

function nextState(badge: Badge, { type }: BadgeInput, selected: boolean): BadgeState {
  if (type === 'offline') return 'disconnected';
  if (badge.state === 'disconnected') {
    if (type !== 'online') return 'disconnected';
    return selected ? 'reconnecting' : 'idle';
  }
  if (!selected) return 'idle';
  switch (type) {
    case 'selected':
      return 'connecting';
    case 'connected':
      return 'connected';
    case 'interrupted':
      return 'reconnecting';
    default:
      return badge.state;
  }
}

/** When the badge offers a reload, in Unix milliseconds, unless the state changes before; null: never in this state. */
export function refreshOfferedAt(badge: Badge): number | null {
  return badge.state === 'reconnecting' ? badge.since + OFFER_REFRESH_MS : null;
}

export function toView(badge: Badge, now: number): BadgeView {
  const offered_at = refreshOfferedAt(badge);
  return {
    badge: badge.state,
    text: badgeTexts[badge.state],
    offer_refresh: offered_at !== null && now >= offered_at,
    next_attempt_at: badge.next_attempt_at,
  };
}
