/** Push notifications: on this device, on other devices, and a test. */
import { useMutation, useQuery } from '@tanstack/react-query';
import { Trash2 } from 'lucide-react';
import { useState } from 'react';
import { type Answered, call, errorMessage } from '../../api/client.ts';
import { pushDevicesQuery } from '../../api/queries.ts';
import { useSession } from '../../api/session.ts';
import { type DeviceRecord, pushSupport, syncSubscription, turnOff } from '../../push/device.ts';
import { Button, IconButton } from '../../ui/button.tsx';
import { deviceName } from '../../ui/device-name.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { DialogForm } from '../../ui/dialog-form.tsx';
import { ActionError, QueryState } from '../../ui/states.tsx';
import { Ago } from '../../ui/time.tsx';
import { Section } from './section.tsx';
import { obstacles, ThisDevice, useCurrentDevice, useRefetchDevices } from './this-device.tsx';

type TestResult = Answered<'testPush'>['results'][number];

export function Notifications() {
  const root = useSession()?.user.role === 'root';
  const devices = useQuery(pushDevicesQuery);
  const here = useCurrentDevice();
  const [results, setResults] = useState<readonly TestResult[]>([]);
  const mine = devices.data?.find(({ fingerprint }) => fingerprint === here?.fingerprint);
  const obstacle = obstacles[pushSupport()];
  return (
    <>
      <Section
        title="This device"
        about="Get notified when an agent needs you or fails, or when a run ends, even if svc is not open."
      >
        {obstacle ?? (
          <QueryState read={devices} rows={2}>
            {() =>
              here === undefined ? null : (
                <ThisDevice root={root} device={mine} subscription={here?.subscription ?? null} />
              )
            }
          </QueryState>
        )}
      </Section>
      <Section
        title="Devices"
        actions={(devices.data ?? []).length > 0 && <SendTest onResults={(given) => setResults(given)} />}
      >
        <QueryState read={devices} rows={2}>
          {(all) =>
            all.length === 0 ? (
              <p className="text-muted">No devices yet. Turn on notifications on this device to add it.</p>
            ) : (
              <ul className="rounded-lg border border-line">
                {all.map((device) => (
                  <Device
                    key={device.id}
                    device={device}
                    here={device.id === mine?.id}
                    result={results.find(({ subscription_id }) => subscription_id === device.id)}
                  />
                ))}
              </ul>
            )
          }
        </QueryState>
      </Section>
      {root && <Keys />}
    </>
  );
}

function Device({
  device,
  here,
  result,
}: {
  device: DeviceRecord;
  here: boolean;
  result: TestResult | undefined;
}) {
  const refetch = useRefetchDevices();
  const remove = useMutation({
    mutationFn: async () => {
      if (here) return turnOff(device);
      await call('deletePushSubscription', { params: { subscription_id: device.id } });
    },
    onSettled: refetch,
  });
  const name = deviceName(device.user_agent);
  return (
    <li className="flex items-center gap-3 border-line px-3 py-1.5 not-first:border-t">
      <div className="min-w-0 flex-1">
        <p className="flex min-w-0 gap-2">
          <span className="truncate font-medium" title={device.user_agent ?? undefined}>
            {name}
          </span>
          {here && <span className="shrink-0 text-completed">This device</span>}
          {device.status === 'expired' && <span className="shrink-0 text-failed">Expired</span>}
        </p>
        <p className="text-muted text-sm">
          {device.service} · added <Ago at={device.created_at} /> ·{' '}
          {device.last_success_at ? (
            <>
              last notified <Ago at={device.last_success_at} />
            </>
          ) : (
            'never notified'
          )}
        </p>
        {device.last_error && <p className="text-failed text-sm">{device.last_error}</p>}
        <p role="status" className="text-sm">
          {result && <Result result={result} />}
        </p>
        <ActionError error={remove.error} />
      </div>
      <IconButton
        label={`Remove ${name}`}
        icon={<Trash2 aria-hidden />}
        busy={remove.isPending}
        onClick={() => remove.mutate()}
      />
    </li>
  );
}

function Result({ result: { ok, error } }: { result: TestResult }) {
  return ok ? (
    <span className="text-completed">Test sent.</span>
  ) : (
    <span className="text-failed">The test was not sent: {error}</span>
  );
}

function SendTest({ onResults }: { onResults: (results: readonly TestResult[]) => void }) {
  const refetch = useRefetchDevices();
  const test = useMutation({
    mutationFn: () => call('testPush', { body: {} }),
    onMutate: () => onResults([]),
    onSuccess: ({ results }) => onResults(results),
    onSettled: refetch,
  });
  return (
    <>
      <ActionError error={test.error} />
      <Button busy={test.isPending} onClick={() => test.mutate()}>
        Send test
      </Button>
    </>
  );
}

function Keys() {
  const refetch = useRefetchDevices();
  const [is_confirming, setConfirming] = useState(false);
  const rotate = useMutation({
    mutationFn: () => call('rotatePushKeys'),
    onSuccess: async () => {
      setConfirming(false);
      // This device need not wait until svc is opened again.
      await syncSubscription().catch(() => {});
    },
    onSettled: refetch,
  });
  return (
    <Section
      title="Keys"
      about="These keys identify svc to push services. Rotate them if they may have leaked."
      actions={<Button onClick={() => setConfirming(true)}>Rotate keys…</Button>}
    >
      <p role="status">
        {rotate.isSuccess && 'Keys rotated. Other devices subscribe again when svc is opened on them.'}
      </p>
      <Dialog
        open={is_confirming}
        onClose={() => setConfirming(false)}
        title="Rotate keys?"
        description="This affects all users: a device gets no notifications until svc is opened on it again."
      >
        <DialogForm
          submit_label="Rotate keys"
          variant="danger"
          busy={rotate.isPending}
          error={rotate.error ? errorMessage(rotate.error) : undefined}
          onSubmit={() => rotate.mutate()}
          onCancel={() => setConfirming(false)}
        />
      </Dialog>
    </Section>
  );
}
