/** The commands that a run accepts in its current status. */
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useAct } from '../../api/act.ts';
import { call } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import { putResponse } from '../../api/put-response.ts';
import type { RunRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { CommandForm } from '../../ui/command-form.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { useOnline } from '../../ui/online.ts';
import { ScreenActionError } from '../../ui/screen-action-error.tsx';
import { ActionError } from '../../ui/states.tsx';
import { showToast } from '../../ui/toast.tsx';
import type { CommandInput } from '../../ui/values.ts';
import { type RunCommand, runCommands } from './facts.ts';

const labels: Record<RunCommand, string> = {
  cancel: 'Cancel run…',
  resume: 'Resume run',
  restart: 'Restart run',
  complete: 'Complete run…',
  fail: 'Fail run…',
};
const busy_labels: Record<RunCommand, string> = {
  cancel: 'Cancelling…',
  resume: 'Resuming…',
  restart: 'Restarting…',
  complete: 'Completing…',
  fail: 'Failing…',
};

type Sending = { command: RunCommand } & CommandInput;

interface RunButtonsProps {
  run: RunRecord;
  /** How many of its steps wait for an answer. */
  questions: number;
  ready: boolean;
}

export function RunButtons({ run, questions, ready }: RunButtonsProps) {
  const queries = useQueryClient();
  const online = useOnline();
  const [confirming, setConfirming] = useState<RunCommand | null>(null);
  const act = useAct(
    (sending: Sending, idempotency_key) => send(run, sending, idempotency_key),
    (record, { command }) => {
      setConfirming(null);
      putResponse(queries, { one: keys.run(run.id) }, record);
      void queries.invalidateQueries({ queryKey: keys.steps(run.id) });
      void queries.invalidateQueries({ queryKey: keys.runs(run.team_id) });
      if (command === 'resume') showToast(`Run ${run.number} resumed`);
      if (command === 'restart') showToast(`Run ${run.number} restarted`);
    },
  );
  const busy = act.isPending ? act.variables.command : null;
  // Which commands apply depends on the steps.
  const commands = ready ? runCommands(run, { questions }) : [];
  const press = (command: RunCommand) => {
    act.reset();
    if (command === 'complete' || command === 'fail' || command === 'cancel') setConfirming(command);
    else act.mutate({ command });
  };
  const close = () => {
    setConfirming(null);
    // The dialog has shown its error.
    if (act.isError) act.reset();
  };
  return (
    <>
      <ScreenActionError title={`Run ${run.number}`} error={confirming === null ? act.error : null} />
      {commands.map((command, at) => (
        <Button
          key={command}
          variant={
            command === 'cancel' || command === 'fail'
              ? 'danger'
              : at === 0 && command !== 'restart'
                ? 'primary'
                : 'plain'
          }
          busy={busy === command}
          disabled={busy !== null || !online}
          title={online ? undefined : 'You are offline'}
          onClick={() => press(command)}
        >
          {busy === command ? busy_labels[command] : labels[command]}
        </Button>
      ))}
      <CancelDialog
        number={run.number}
        open={confirming === 'cancel'}
        busy={busy === 'cancel'}
        error={act.error}
        onClose={close}
        onCancel={() => act.mutate({ command: 'cancel' })}
      />
      <Dialog
        open={confirming === 'complete' || confirming === 'fail'}
        onClose={close}
        title={confirming === 'fail' ? `Fail run ${run.number}` : `Complete run ${run.number}`}
      >
        <CommandForm
          key={confirming}
          command={confirming === 'fail' ? 'fail' : 'complete'}
          draft={`run-${confirming}.${run.id}`}
          busy={act.isPending}
          error={act.error}
          onSend={(input) => act.mutateAsync({ command: confirming!, ...input })}
        />
      </Dialog>
    </>
  );
}

function CancelDialog({
  number,
  open,
  busy,
  error,
  onClose,
  onCancel,
}: {
  number: number;
  open: boolean;
  busy: boolean;
  error: unknown;
  onClose: () => void;
  onCancel: () => void;
}) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={`Cancel run ${number}?`}
      description="This stops its running steps. You can resume it later from the steps that did not complete."
    >
      <div className="flex flex-col gap-3">
        <ActionError error={error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Keep running</Button>
          <Button variant="danger" busy={busy} onClick={onCancel}>
            {busy ? 'Cancelling…' : 'Cancel run'}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

function send({ team_id, id: run_id }: RunRecord, { command, ...input }: Sending, idempotency_key: string) {
  const params = { team_id, run_id };
  const { output, error_text = '' } = input;
  switch (command) {
    case 'cancel':
      return call('cancelRun', { params, idempotency_key });
    case 'resume':
      return call('resumeRun', { params, idempotency_key });
    case 'restart':
      return call('restartRun', { params, idempotency_key });
    case 'complete':
      return call('completeRun', { params, body: { output }, idempotency_key });
    case 'fail':
      return call('failRun', { params, body: { error_text }, idempotency_key });
  }
}
