/** What devices are told while no page is open: this one, the others, and a test that says what happened. */
import { useMutation, useQuery } from '@tanstack/react-query';
import { Trash2 } from 'lucide-react';
import { useState } from 'react';
import { type Answered, call, wordsOf } from '../../api/client.ts';
import { pushDevicesQuery } from '../../api/queries.ts';
import { useSession } from '../../api/session.ts';
import { ability, type DeviceRecord, turnOff } from '../../push/device.ts';
import { ActForm } from '../../ui/act-form.tsx';
import { Button, IconButton } from '../../ui/button.tsx';
import { deviceName } from '../../ui/device-name.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Reading, Refused } from '../../ui/states.tsx';
import { Ago } from '../../ui/time.tsx';
import { Section } from './section.tsx';
import { hindrances, ThisDevice, useHere, useTold } from './this-device.tsx';

type TestResult = Answered<'testPush'>['results'][number];

export function Notifications() {
  const root = useSession()?.user.role === 'root';
  const devices = useQuery(pushDevicesQuery);
  const here = useHere();
  const [results, setResults] = useState<readonly TestResult[]>([]);
  const mine = devices.data?.find(({ fingerprint }) => fingerprint === here?.fingerprint);
  const hindrance = hindrances[ability()];
  return (
    <>
      <Section
        title="This device"
        about="It is told when an agent needs you, when one failed and when a run ended, also while no page of this service is open."
      >
        {hindrance ?? (
          <Reading read={devices} rows={2}>
            {() =>
              here === undefined ? null : (
                <ThisDevice root={root} device={mine} subscription={here?.subscription ?? null} />
              )
            }
          </Reading>
        )}
      </Section>
      <Section
        title="Devices"
        actions={(devices.data ?? []).length > 0 && <SendTest onResults={(given) => setResults(given)} />}
      >
        <Reading read={devices} rows={2}>
          {(all) =>
            all.length === 0 ? (
              <p className="text-muted">No device is told anything.</p>
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
        </Reading>
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
  const told = useTold();
  const remove = useMutation({
    mutationFn: async () => {
      if (here) return turnOff(device);
      await call('deletePushSubscription', { params: { subscription_id: device.id } });
    },
    onSettled: told,
  });
  const name = deviceName(device.user_agent);
  return (
    <li className="flex items-center gap-3 border-line px-3 py-1.5 not-first:border-t">
      <div className="min-w-0 flex-1">
        <p className="flex min-w-0 gap-2">
          <span className="truncate font-medium" title={device.user_agent ?? undefined}>
            {name}
          </span>
          {here && <span className="shrink-0 text-completed">this device</span>}
          {device.status === 'expired' && <span className="shrink-0 text-failed">expired</span>}
        </p>
        <p className="text-muted text-sm">
          {device.service} · since <Ago at={device.created_at} /> ·{' '}
          {device.last_success_at ? (
            <>
              last told <Ago at={device.last_success_at} />
            </>
          ) : (
            'never told'
          )}
        </p>
        {device.last_error && <p className="text-failed text-sm">{device.last_error}</p>}
        <p role="status" className="text-sm">
          {result && <Result result={result} />}
        </p>
        <Refused error={remove.error} />
      </div>
      <IconButton
        label={`Forget ${name}`}
        icon={<Trash2 aria-hidden />}
        busy={remove.isPending}
        onClick={() => remove.mutate()}
      />
    </li>
  );
}

function Result({ result: { ok, error } }: { result: TestResult }) {
  return ok ? (
    <span className="text-completed">The test is on its way.</span>
  ) : (
    <span className="text-failed">The test did not go: {error}</span>
  );
}

function SendTest({ onResults }: { onResults: (results: readonly TestResult[]) => void }) {
  const told = useTold();
  const test = useMutation({
    mutationFn: () => call('testPush', { body: {} }),
    onMutate: () => onResults([]),
    onSuccess: ({ results }) => onResults(results),
    onSettled: told,
  });
  return (
    <>
      <Refused error={test.error} />
      <Button busy={test.isPending} onClick={() => test.mutate()}>
        Send test
      </Button>
    </>
  );
}

function Keys() {
  const told = useTold();
  const [asked, setAsked] = useState(false);
  const rotate = useMutation({
    mutationFn: () => call('rotatePushKeys'),
    onSuccess: () => setAsked(false),
    onSettled: told,
  });
  return (
    <Section
      title="Keys"
      about="The service proves itself to push services with a key of its own. Make new ones when the old ones may be known to others."
      actions={<Button onClick={() => setAsked(true)}>Make new keys</Button>}
    >
      <p role="status">
        {rotate.isSuccess && 'The keys are new. Each device subscribes again when it is opened.'}
      </p>
      <Dialog
        open={asked}
        onClose={() => setAsked(false)}
        title="Make new keys?"
        description="No device of any user is told anything until its user opens this service there."
      >
        <ActForm
          act="Make new keys"
          look="danger"
          busy={rotate.isPending}
          error={rotate.error ? wordsOf(rotate.error) : undefined}
          onSubmit={() => rotate.mutate()}
          onCancel={() => setAsked(false)}
        />
      </Dialog>
    </Section>
  );
}
