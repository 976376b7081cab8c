/** The commands that a run accepts in its current status. */
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useAct } from '../../api/act.ts';
import { call } from '../../api/client.ts';
import { isConflict, readAgainOnConflict } from '../../api/conflict.ts';
import { keys } from '../../api/keys.ts';
import { putResponse } from '../../api/put-response.ts';
import type { RunRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { CommandForm } from '../../ui/command-form.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { useOnline } from '../../ui/online.ts';
import { useReplacedGuard } from '../../ui/replaced.ts';
import { ScreenActionError } from '../../ui/screen-action-error.tsx';
import { ActionError } from '../../ui/states.tsx';
import { showToast } from '../../ui/toast.tsx';
import type { CommandInput } from '../../ui/values.ts';
import { countQuestions, hasStarted, type RunCommand, runCommands, type StepRecord } from './facts.ts';

/** Of buttons; followed by `…` if the command has a dialog. */
const labels: Record<RunCommand, string> = {
  cancel: 'Cancel run',
  resume: 'Resume run',
  restart: 'Restart run',
  complete: 'Complete run',
  fail: 'Fail run',
};
const busy_labels: Record<RunCommand, string> = {
  cancel: 'Cancelling…',
  resume: 'Resuming…',
  restart: 'Restarting…',
  complete: 'Completing…',
  fail: 'Failing…',
};

/** `version`: of the run that the user has seen, if the command continues it. */
type Sending = { command: RunCommand; version?: number } & CommandInput;

export function RunButtons({ run, steps }: { run: RunRecord; steps: readonly StepRecord[] }) {
  const online = useOnline();
  const [shown, setShown] = useState<Sending | null>(null);
  const act = useRunCommand(run, () => setShown(null));
  const busy = act.isPending ? act.variables.command : null;
  const commands = runCommands(run, { questions: countQuestions(steps) });
  const hasDialog = (command: RunCommand) =>
    command === 'restart' ? hasStarted(steps) : command !== 'resume';
  // *Restart run* takes the place of *Cancel run* when the run ends.
  const guard = useReplacedGuard(commands.join(), busy !== null);
  const press = (command: RunCommand) => {
    act.reset();
    const continues = command === 'resume' || command === 'restart';
    const sending = { command, ...(continues && { version: run.version }) };
    if (hasDialog(command)) setShown(sending);
    else act.mutate(sending);
  };
  const confirming = shown?.command ?? null;
  const close = () => {
    setShown(null);
    // The dialog has shown its error.
    if (act.isError) act.reset();
  };
  // The page shows the error, and the run as it is now: the dialog was about another version.
  const closeOnConflict = (error: unknown) => {
    if (isConflict(error)) setShown(null);
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
          onClick={guard(() => press(command))}
        >
          {busy === command ? busy_labels[command] : `${labels[command]}${hasDialog(command) ? '…' : ''}`}
        </Button>
      ))}
      {(['cancel', 'restart'] as const).map((command) => (
        <ConfirmDialog
          key={command}
          command={command}
          number={run.number}
          open={confirming === command}
          busy={busy === command}
          error={act.error}
          onClose={close}
          onConfirm={() => act.mutate(shown!, { onError: closeOnConflict })}
        />
      ))}
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

const confirmations = {
  cancel: {
    description:
      'This stops its running steps. You can resume it later from the steps that did not complete.',
    keep: 'Keep running',
  },
  restart: {
    description:
      'This runs all of its steps again, including completed ones, and discards their outputs. Steps that were added to the run are removed.',
    keep: 'Keep as it is',
  },
} as const;

function ConfirmDialog({
  command,
  number,
  open,
  busy,
  error,
  onClose,
  onConfirm,
}: {
  command: keyof typeof confirmations;
  number: number;
  open: boolean;
  busy: boolean;
  error: unknown;
  onClose: () => void;
  onConfirm: () => void;
}) {
  const { description, keep } = confirmations[command];
  return (
    <Dialog open={open} onClose={onClose} title={`${labels[command]} ${number}?`} description={description}>
      <div className="flex flex-col gap-3">
        <ActionError error={error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{keep}</Button>
          <Button variant="danger" busy={busy} onClick={onConfirm}>
            {busy ? busy_labels[command] : labels[command]}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

function useRunCommand(run: RunRecord, onDone: () => void) {
  const queries = useQueryClient();
  const changed = [keys.run(run.id), keys.steps(run.id)];
  return useAct(
    (sending: Sending, idempotency_key) =>
      readAgainOnConflict(queries, changed, send(run, sending, idempotency_key)),
    (record, { command }) => {
      onDone();
      putResponse(queries, { one: keys.run(run.id) }, record);
      void queries.invalidateQueries({ queryKey: keys.steps(run.id) });
      void queries.invalidateQueries({ queryKey: keys.runs(run.team_id) });
      if (command === 'resume') showToast(`Run ${run.number} resumed`);
      if (command === 'restart') showToast(`Run ${run.number} restarted`);
    },
  );
}

function send(
  { team_id, id: run_id }: RunRecord,
  { command, version, ...input }: Sending,
  idempotency_key: string,
): Promise<RunRecord> {
  const params = { team_id, run_id };
  const { output, error_text = '' } = input;
  switch (command) {
    case 'cancel':
      return call('cancelRun', { params, idempotency_key });
    case 'resume':
      return call('resumeRun', { params, body: { version }, idempotency_key });
    case 'restart':
      return call('restartRun', { params, body: { version }, idempotency_key });
    case 'complete':
      return call('completeRun', { params, body: { output }, idempotency_key });
    case 'fail':
      return call('failRun', { params, body: { error_text }, idempotency_key });
  }
}
