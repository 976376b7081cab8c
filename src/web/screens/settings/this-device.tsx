/** Notification settings for this device: turn them on or off and choose which to get, or see what prevents them. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Bell, BellOff } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import type { PushKind } from '../../../features/notifications/rules.ts';
import { keys } from '../../api/keys.ts';
import { pushDevicesQuery } from '../../api/queries.ts';
import {
  currentSubscription,
  type DeviceRecord,
  fingerprintEndpoint,
  type Preferences,
  type PushSupport,
  turnOff,
  turnOn,
  updatePreferences,
} from '../../push/device.ts';
import { Button } from '../../ui/button.tsx';
import { ActionError } from '../../ui/states.tsx';

const DEFAULTS: Preferences = {
  kinds: ['review', 'agent_failed', 'run_ended'],
  with_commands: false,
  of_others: false,
};
const kindLabels: Record<PushKind, string> = {
  review: 'An agent needs you',
  agent_failed: 'An agent failed',
  run_ended: 'A run ended',
};

/** The browser's subscription and its fingerprint. */
const currentDeviceQuery = {
  queryKey: keys.push_subscription,
  queryFn: async () => {
    const subscription = await currentSubscription();
    return subscription && { subscription, fingerprint: await fingerprintEndpoint(subscription) };
  },
  staleTime: 0,
  // A subscription is not plain data and cannot be compared.
  structuralSharing: false,
} as const;

/** Undefined until the browser has answered. */
export function useCurrentDevice():
  | { subscription: PushSubscription; fingerprint: string }
  | null
  | undefined {
  return useQuery(currentDeviceQuery).data;
}

/** What prevents notifications, and what to do about it. */
export const obstacles: Record<PushSupport, ReactNode> = {
  supported: null,
  insecure: (
    <Obstacle title="Notifications need a secure connection.">
      Open svc over <b>https</b>, or at <b>localhost</b> on the machine that runs it. To enable https, use a
      proxy with a certificate, or set <code>server.tls.cert</code> and <code>server.tls.key</code>.
    </Obstacle>
  ),
  install: (
    <Obstacle title="Add this page to the home screen first.">
      In Safari, choose <b>Share</b>, then <b>Add to Home Screen</b>. Open the app from there and come back to
      this page.
    </Obstacle>
  ),
  unsupported: (
    <Obstacle title="This browser cannot show notifications.">
      Use a current version of Chrome, Edge, Firefox or Safari, outside a private window.
    </Obstacle>
  ),
  denied: (
    <Obstacle title="Notifications from this page are blocked.">
      Open the site settings in the address bar, and set <b>Notifications</b> to <b>Allow</b>. Then reload
      this page.
    </Obstacle>
  ),
};

function Obstacle({ title, children }: { title: string; children: ReactNode }) {
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
  const refetch = useRefetchDevices();
  const on = useMutation({ mutationFn: () => turnOn(DEFAULTS), onSettled: refetch });
  const off = useMutation({ mutationFn: () => turnOff(device), onSettled: refetch });
  if (!device || !subscription || device.status === 'expired') {
    return (
      <div className="flex flex-col items-start gap-2">
        <Button variant="primary" icon={<Bell aria-hidden />} busy={on.isPending} onClick={() => on.mutate()}>
          Turn on notifications
        </Button>
        <ActionError error={on.error ?? off.error} />
      </div>
    );
  }
  return (
    <div className="flex flex-col items-start gap-2">
      <PreferenceFields root={root} device={device} subscription={subscription} />
      <Button icon={<BellOff aria-hidden />} busy={off.isPending} onClick={() => off.mutate()}>
        Turn off notifications
      </Button>
      <ActionError error={off.error} />
    </div>
  );
}

function PreferenceFields({
  root,
  device,
  subscription,
}: {
  root: boolean;
  device: DeviceRecord;
  subscription: PushSubscription;
}) {
  const { shown, choose, error } = usePreferences(device, subscription);
  const { kinds, with_commands, of_others } = shown;
  return (
    <>
      <fieldset className="flex flex-col">
        <legend className="sr-only">Notifications on this device</legend>
        {(Object.keys(kindLabels) as PushKind[]).map((kind) => (
          <Check
            key={kind}
            label={kindLabels[kind]}
            checked={kinds.includes(kind)}
            onChange={(checked) =>
              choose({ kinds: checked ? [...kinds, kind] : kinds.filter((each) => each !== kind) })
            }
          />
        ))}
        <Check
          label="Include what the agent wants to do"
          hint="Shows the agent’s own text, which others may read on your lock screen."
          checked={with_commands}
          onChange={(checked) => choose({ with_commands: checked })}
        />
        {root && (
          <Check
            label="Include other users’ agents and teams"
            hint="Otherwise only your own."
            checked={of_others}
            onChange={(checked) => choose({ of_others: checked })}
          />
        )}
      </fieldset>
      <ActionError error={error} />
    </>
  );
}

/** The device's preferences. The user's choice is shown until the server has answered. */
function usePreferences(device: DeviceRecord, subscription: PushSubscription) {
  const refetch = useRefetchDevices();
  const [pending_preferences, setPendingPreferences] = useState<Preferences | null>(null);
  const save = useMutation({
    mutationFn: (preferences: Preferences) => updatePreferences(subscription, preferences),
    // Run changes one after the other, so that the last one wins.
    scope: { id: 'push-preferences' },
    onSettled: async (_device, _error, changed) => {
      await refetch();
      setPendingPreferences((now) => (now === changed ? null : now));
    },
  });
  const { kinds, with_commands, of_others } = pending_preferences ?? device;
  const shown: Preferences = { kinds, with_commands, of_others };
  const choose = (fields: Partial<Preferences>) => {
    const changed = { ...shown, ...fields };
    setPendingPreferences(changed);
    save.mutate(changed);
  };
  return { shown, choose, error: save.error };
}

function Check({
  label,
  hint,
  checked,
  onChange,
}: {
  label: string;
  hint?: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
}) {
  return (
    <label className="tap flex items-center gap-2">
      <input
        type="checkbox"
        checked={checked}
        onChange={(event) => onChange(event.target.checked)}
        className="size-4 shrink-0 accent-accent"
      />
      <span>
        {label}
        {hint && <span className="block text-muted text-sm">{hint}</span>}
      </span>
    </label>
  );
}

/** Reads this browser's subscription and the service's list of devices again. */
export function useRefetchDevices(): () => Promise<unknown> {
  const queries = useQueryClient();
  return () =>
    Promise.all([
      queries.invalidateQueries({ queryKey: pushDevicesQuery.queryKey }),
      queries.invalidateQueries({ queryKey: currentDeviceQuery.queryKey }),
    ]);
}
