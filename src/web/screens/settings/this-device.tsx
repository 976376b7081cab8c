/** Notifications on this very device: on, off and of what; or why it cannot have them, and what to do about it. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Bell, BellOff } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import type { PushKind } from '../../../features/notifications/rules.ts';
import { pushDevicesQuery } from '../../api/queries.ts';
import {
  type Ability,
  change,
  type DeviceRecord,
  fingerprintOf,
  subscriptionHere,
  turnOff,
  turnOn,
  type Wishes,
} from '../../push/device.ts';
import { Button } from '../../ui/button.tsx';
import { Refused } from '../../ui/states.tsx';

const AT_FIRST: Wishes = {
  kinds: ['review', 'agent_failed', 'run_ended'],
  with_commands: false,
  of_others: false,
};
const kindLabels: Record<PushKind, string> = {
  review: 'An agent asks for permission',
  agent_failed: 'An agent failed',
  run_ended: 'A run ended',
};

/** The browser's own subscription, and how the service knows it. */
const hereQuery = {
  queryKey: ['push-here'],
  queryFn: async () => {
    const subscription = await subscriptionHere();
    return subscription && { subscription, fingerprint: await fingerprintOf(subscription) };
  },
  staleTime: 0,
  // A subscription is no plain data, and comparing two of them changes nothing.
  structuralSharing: false,
} as const;

/** Undefined until the browser has said. */
export function useHere(): { subscription: PushSubscription; fingerprint: string } | null | undefined {
  return useQuery(hereQuery).data;
}

/** Why a device cannot be told anything, and what to do about it. */
export const hindrances: Record<Ability, ReactNode> = {
  able: null,
  insecure: (
    <Hindrance title="Notifications need a safe connection.">
      Open this service by <b>https</b>, or at <b>localhost</b> on its own machine. A proxy with a
      certificate, or <code>server.tls.cert</code> and <code>server.tls.key</code>, make it reachable by
      https.
    </Hindrance>
  ),
  install: (
    <Hindrance title="Put this page on the home screen first.">
      In Safari, choose <b>Share</b>, then <b>Add to Home Screen</b>. Open the app from there and come back to
      this page.
    </Hindrance>
  ),
  unsupported: (
    <Hindrance title="This browser cannot show notifications.">
      A private window cannot either. Take a current Chrome, Edge, Firefox or Safari.
    </Hindrance>
  ),
  denied: (
    <Hindrance title="Notifications of this page are blocked.">
      Allow them in the browser: beside the address, open the page’s settings and set <b>Notifications</b> to{' '}
      <b>Allow</b>. Then load this page again.
    </Hindrance>
  ),
};

function Hindrance({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div role="note" className="flex flex-col gap-1 rounded-lg border border-line bg-surface p-3">
      <p className="flex items-center gap-2 font-medium">
        <BellOff aria-hidden className="size-4 shrink-0" /> {title}
      </p>
      <p className="text-muted">{children}</p>
    </div>
  );
}

export function ThisDevice({
  root,
  device,
  subscription,
}: {
  root: boolean;
  device: DeviceRecord | undefined;
  subscription: PushSubscription | null;
}) {
  const told = useTold();
  const on = useMutation({ mutationFn: () => turnOn(AT_FIRST), onSettled: told });
  const off = useMutation({ mutationFn: () => turnOff(device), onSettled: told });
  // What was asked for is shown until it is answered.
  const [wanted, setWanted] = useState<Wishes | null>(null);
  const wish = useMutation({
    mutationFn: (wishes: Wishes) => change(subscription!, wishes),
    // One after the other: the last word counts.
    scope: { id: 'push-wishes' },
    onSettled: async (_device, _error, asked) => {
      await told();
      setWanted((now) => (now === asked ? null : now));
    },
  });
  const failed = <Refused error={on.error ?? off.error ?? wish.error} />;
  if (!device || !subscription || device.status === 'expired') {
    return (
      <div className="flex flex-col items-start gap-2">
        <Button look="primary" icon={<Bell aria-hidden />} busy={on.isPending} onClick={() => on.mutate()}>
          Turn on notifications
        </Button>
        {failed}
      </div>
    );
  }
  const check = (label: string, checked: boolean, next: (checked: boolean) => Wishes, hint?: string) => (
    <label key={label} className="tap flex items-center gap-2">
      <input
        type="checkbox"
        checked={checked}
        onChange={(event) => {
          const asked = next(event.target.checked);
          setWanted(asked);
          wish.mutate(asked);
        }}
        className="size-4 shrink-0 accent-accent"
      />
      <span>
        {label}
        {hint && <span className="block text-muted text-sm">{hint}</span>}
      </span>
    </label>
  );
  const { kinds, with_commands, of_others } = wanted ?? device;
  const base = { kinds, with_commands, of_others };
  return (
    <div className="flex flex-col items-start gap-2">
      <fieldset className="flex flex-col">
        <legend className="sr-only">What this device is told</legend>
        {(Object.keys(kindLabels) as PushKind[]).map((kind) =>
          check(kindLabels[kind], kinds.includes(kind), (checked) => ({
            ...base,
            kinds: checked ? [...kinds, kind] : kinds.filter((each) => each !== kind),
          })),
        )}
        {check(
          'Say what an agent wants to do',
          with_commands,
          (checked) => ({ ...base, with_commands: checked }),
          'In its own words, which others may read on a locked screen.',
        )}
        {root &&
          check(
            'Also of other people’s agents and teams',
            of_others,
            (checked) => ({ ...base, of_others: checked }),
            'Else of your own alone.',
          )}
      </fieldset>
      <Button icon={<BellOff aria-hidden />} busy={off.isPending} onClick={() => off.mutate()}>
        Turn off on this device
      </Button>
      {failed}
    </div>
  );
}

/** Both lists are read again: this browser's subscription and the service's devices. */
export function useTold(): () => Promise<unknown> {
  const queries = useQueryClient();
  return () =>
    Promise.all([
      queries.invalidateQueries({ queryKey: pushDevicesQuery.queryKey }),
      queries.invalidateQueries({ queryKey: hereQuery.queryKey }),
    ]);
}
